"""Questions without an answer give one sentence before hours are spent."""

from __future__ import annotations

import subprocess

from planted_upgrades import TO_THE_RELEASE, suite_of, write_project

RUN = ("--run", "python -m unittest -q test_mine")


def test_ends_with_the_same_packages_are_refused(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07==1.0"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN)
    assert ended.code == 2
    assert "--unpin" in ended.stderr


def test_unpinning_makes_the_ends_differ(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07==1.0"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, "--unpin", *TO_THE_RELEASE, "--json")
    assert ended.json["failures"][0]["culprits"][0]["first_bad"] == "2.0"


def test_a_day_before_the_package_existed(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07"])
    ended = planted("bisect", "--good", "2023-01-01", "--bad", "2024-06-01", *RUN)
    assert ended.code == 2
    assert "2024-01-01" in ended.stderr


def test_a_bad_end_that_passes(planted):
    write_project(planted.folder, suite_of("part01"), requires=["part01"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, *TO_THE_RELEASE, "--json")
    assert (ended.code, ended.json["status"]) == (1, "no-failure")


def test_a_limit_that_hides_the_failure_is_lifted_at_once(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07<2", "part08"])
    words = ("--good", "2024-01-15", "--bad", "2024-06-01", *RUN, *TO_THE_RELEASE, "--json")
    answer = planted("bisect", *words).json
    assert answer["failures"][0]["culprits"][0]["first_bad"] == "2.0"
    assert answer["lifted"] == ["part07<2"]
    assert answer["sentence"].startswith("Without the project's own part07<2, with which nothing fails: 1 test fails")


def test_a_limit_that_hides_nothing_changes_no_answer(planted):
    write_project(planted.folder, suite_of("part01"), requires=["part01<2", "part08"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, "--confirm", "1")
    assert ended.code == 1
    assert "without part01<2: nothing fails either" in " ".join(ended.stdout.split())
    assert "part08" not in ended.stdout


def test_a_failure_at_both_ends_gives_no_answer(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07"])
    ended = planted("bisect", "--good", "2024-04-15", "--bad", "2024-06-01", *RUN, "--json")
    assert (ended.code, ended.json["status"]) == (1, "not-a-regression")
    assert ended.json["failing_at_both"] == ["test_mine.T.test_part07"]
    shown = planted("bisect", "--good", "2024-04-15", "--bad", "2024-06-01", *RUN).stdout
    assert "fail at both ends: test_mine.T.test_part07" in shown
    assert "Next\n  to go back until it passes" in shown
    assert "harness bisect --run 'python -m unittest -q test_mine' --bad 2024-06-01" in shown


def test_a_command_that_fails_at_both_ends_for_different_reasons(planted):
    """It has no tests to tell apart, so both reasons are told."""
    write_project(planted.folder, "", requires=["part19", "part07"])
    (planted.folder / "check.py").write_text("import part19, part07\npart07.work()\npart19.work()\n")
    subprocess.run(["git", "add", "."], cwd=planted.folder, check=True)
    run = ("--run", "python check.py")
    answer = planted("bisect", "--good", "2024-03-15", "--bad", "2024-06-01", *run, "--json").json
    assert answer["status"] == "not-a-regression"
    assert "nineteen is broken" in answer["advice"]
    assert "part07 is broken" in answer["advice"]


def test_a_part_of_a_package_that_is_there_is_no_missing_package(planted):
    write_project(planted.folder, "import part07.gone\n" + suite_of("part07"), requires=["part07"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, *TO_THE_RELEASE)
    assert "part07.gone" in ended.stdout
    assert "--with" not in ended.stdout


def test_a_package_missing_on_every_day_is_named(planted):
    write_project(planted.folder, "import pkg_resources\n" + suite_of("part07"), requires=["part07"])
    ended = planted("bisect", "--bad", "2024-06-01", *RUN)
    assert ended.code == 1
    assert "Not installed: pkg_resources. --with 'setuptools<81' adds what is missing" in ended.stdout


def test_a_command_that_finds_no_tests(planted):
    write_project(planted.folder, "", requires=["part07"])
    ended = planted(
        "bisect", "--good", "2024-01-15", "--bad", "2024-06-01", "--run", "python -m unittest -q test_other"
    )
    assert ended.code in (1, 2)
    assert "since part07" not in ended.stdout


def test_files_written_by_a_run_stay_in_its_copy(planted):
    tests = (
        suite_of("part07")
        + "\nimport pathlib\nassert not pathlib.Path('left').exists()\npathlib.Path('left').touch()\n"
    )
    folder = write_project(planted.folder, tests, requires=["part07"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, *TO_THE_RELEASE, "--json")
    assert ended.json["status"] == "found"
    assert not (folder / "left").exists()


def test_a_python_with_wheels_at_both_ends_is_suggested(planted, parts_house):
    """There is neither a wheel for this Python nor a source release; the message names a Python that has wheels."""
    parts_house.add("compiled", "1.0", files={}, tag="cp39-cp39-any", uploaded="2024-01-01T12:00:00Z")
    write_project(planted.folder, suite_of("part07"), requires=["part07", "compiled"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN)
    assert ended.code == 2
    assert "compiled" in ended.stderr


def test_flaky_tests_are_no_failure_of_either_end(planted):
    odd = "\n    def test_odd(self):\n        import random\n        self.assertLess(random.random(), 0.5)\n"
    write_project(planted.folder, suite_of("part08") + odd, requires=["part08"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN, *TO_THE_RELEASE)
    assert "fails with OK" not in ended.stdout


def test_a_flaky_test_blames_no_package(planted):
    """It passes at the good end and fails once at the bad one, but not when it is repeated."""
    tests = """
    import os, pathlib, unittest, part01

    class T(unittest.TestCase):
        def test_own(self):
            pass

        def test_wavers(self):
            seen = pathlib.Path(os.environ["SEEN"])
            is_first = part01.VERSION == "2.1" and not seen.exists()
            if is_first:
                seen.touch()
            self.assertFalse(is_first)
    """
    write_project(planted.folder, tests, requires=["part01"])
    planted = planted.with_environ(SEEN=str(planted.folder.parent / "seen"))
    ends = ("--good", "2024-01-15", "--bad", "2024-06-01", "--pass-env", "SEEN")
    ended = planted("bisect", *ends, *RUN, "--json")
    assert (ended.code, ended.json["status"]) == (1, "not-a-regression")
    assert ended.json["flaky"] == ["test_mine.T.test_wavers"]
    assert ended.json["failures"] == []
