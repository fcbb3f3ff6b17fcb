"""One package between two releases, with a test suite: the same tests and groups as without a package."""

from __future__ import annotations

from planted_upgrades import TO_THE_RELEASE, suite_of, write_project

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
REQUIRES = ["part07", "part19", "part03"]


def only_culprit(answer):
    (culprit,) = {
        (culprit["package"], culprit["last_good"], culprit["first_bad"])
        for group in answer["failures"]
        for culprit in group["culprits"]
    }
    return culprit


def test_only_newly_broken_tests_are_bisected(planted):
    write_project(planted.folder, suite_of(*REQUIRES), requires=REQUIRES)
    answer = planted("bisect", "part07", "--good", "1.0", "--bad", "2.1", *RUN).json
    assert (answer["status"], answer["schema"]) == ("found", 4)
    assert only_culprit(answer) == ("part07", "1.2", "2.0")
    assert answer["failures"][0]["tests"] == ["test_mine.T.test_part07"]
    assert answer["failing_at_both"] == ["test_mine.T.test_part19"]  # broken by another package
    assert answer["ends"]["good"] == {"kind": "release", "text": "1.0"}


def test_without_a_good_end_it_steps_back(planted):
    write_project(planted.folder, suite_of("part07", "part03"), requires=REQUIRES)
    answer = planted("bisect", "part07", "--bad", "2.1", *RUN).json
    assert only_culprit(answer) == ("part07", "1.2", "2.0")


def test_a_release_that_does_not_exist(planted):
    write_project(planted.folder, suite_of("part07"), requires=REQUIRES)
    ended = planted("bisect", "part07", "--good", "0.9", "--bad", "2.1", *RUN)
    assert ended.code != 0
    assert "0.9" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_releases_that_break_nothing_give_no_culprit(planted):
    write_project(planted.folder, suite_of("part07", "part19"), requires=REQUIRES)
    answer = planted("bisect", "part03", "--good", "1.0", "--bad", "2.1", *RUN).json
    assert answer["status"] == "not-a-regression"
