"""One issue for each cause reports what broke a project's tests; and the last green packages are kept in a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from support import changed, make_answer

from harness.bisection.answer import Comparison
from harness.errors import UserMistake
from harness.model import Change, Combination, Device, Lock, Observation, Outcome, Pin, Repro, Signature
from harness.model.culprit import Evidence
from harness.question.ends import parse_end
from harness.question.question import Question
from harness.records import as_record, read_record
from harness.watch.project import (
    FILE,
    SCHEMA,
    LastGreen,
    NightStatus,
    ProjectCause,
    ProjectNight,
    ProjectWatch,
    keep_last_green,
    read_last_green,
)
from harness.watch.tracker import ActionKind, Issue, actions

ANSWER = evolve(
    make_answer(
        "numpy",
        tests=tuple(f"test_a.py::test_{i}[`|`]" for i in range(14)),
        signature=Signature(exception="AttributeError", message="`np.asfarray` was removed"),
        before="1.26.4",
        after="2.0.0",
        suspects=("2.0.0",),
        evidence=(Evidence("removed-name", "numpy.asfarray", "asfarray is gone, ask @me"),),
    ),
    sentence="14 tests fail since numpy 2.0.0.",
    constraints=("numpy<2",),
    verified_by=Observation("k", Outcome.COMPLETED, "pytest", "d", Device.CPU),
    comparison=Comparison(
        changes=(Change("numpy", "1.26.4", "2.3.2"), Change("new", None, "1")), flaky=("test_a.py::test_flaky",)
    ),
)
WATCH = ProjectWatch(
    session=None,
    question=Question("", Repro("pytest", "d"), Combination("3.11.0", ())),
    newest=parse_end("2025-07-31", "--day", now=datetime(2025, 8, 1, tzinfo=UTC)),
    state=Path(),
    name="Newest packages",
    command="pytest -q tests",
)
SENTENCE = "14 tests fail since numpy 2.0.0"
CAUSE = ProjectCause("ab", SENTENCE, WATCH._report(ANSWER, LastGreen({}, "2023-05-01")))
BROKEN = ProjectNight("Newest packages", NightStatus.BROKEN, f"{SENTENCE}.", ("numpy<2",), (CAUSE,))
PASSES = evolve(BROKEN, status=NightStatus.PASSES, constraints=(), causes=())


def needed(night: ProjectNight, *issues: Issue) -> list[tuple[ActionKind, int]]:
    """What `harness issues` does after a night."""
    return [(action.kind, action.number) for action in actions(night.issues, issues, night.marker)]


def issue(number=7, night=BROKEN, **more) -> Issue:
    """The issue of a night."""
    (action,) = actions(night.issues, [])
    return Issue(number, action.title, more.get("body", action.body), more.get("is_open", True))


def test_the_report_names_tests_release_and_remedy():
    for text in (
        "14 tests",
        "test_a.py::test_13",
        "numpy",
        "1.26.4",
        "2.0.0",
        "numpy<2",
        "test_a.py::test_flaky",
        "2023-05-01",
        "new (absent)",
    ):
        assert text in BROKEN.report
    assert "harness bisect --run 'pytest -q tests' --good 2023-05-01 --bad 2025-07-31" in BROKEN.report


@pytest.mark.parametrize(
    ("end", "option"),
    [
        ({"kind": "day", "text": "2023-04-01"}, "--good 2023-04-01 "),
        ({"kind": "release", "text": "numpy 1.26.4"}, ""),
        (None, ""),
    ],
)
def test_without_a_last_night_the_command_names_the_good_end_that_an_option_can_name(end, option):
    answer = evolve(ANSWER, question=evolve(ANSWER.question, ends={"good": end, "bad": None}))
    assert f"harness bisect --run 'pytest -q tests' {option}--bad 2025-07-31" in WATCH._report(answer, None)


def test_a_message_contains_no_markup_and_mentions_nobody():
    page = MarkdownIt("commonmark").enable("table").render(BROKEN.report)
    assert "test_a.py::test_0[`" in page
    assert "@me" not in page


def test_the_night_is_kept_as_json(tmp_path):
    record = as_record(BROKEN, SCHEMA)
    assert (record["status"], record["sentence"], record["name"]) == ("broken", BROKEN.sentence, BROKEN.name)
    (tmp_path / "night.json").write_text(json.dumps(record), encoding="utf-8")
    assert read_record(tmp_path / "night.json", ProjectNight, SCHEMA) == BROKEN


def test_a_cause_has_one_issue_that_is_updated_closed_and_reopened():
    assert needed(BROKEN) == [(ActionKind.OPEN, 0)]
    assert needed(BROKEN, issue()) == []
    assert needed(BROKEN, issue(body=issue().body.replace("\n", "\r\n"))) == []
    assert needed(BROKEN, issue(9), issue(7)) == [(ActionKind.CLOSE, 9)]
    later = evolve(BROKEN, causes=(evolve(CAUSE, title="15 tests fail since numpy 2.0.0"),))
    assert needed(later, issue()) == [(ActionKind.UPDATE, 7)]
    assert needed(PASSES, issue()) == [(ActionKind.CLOSE, 7)]
    assert needed(PASSES, issue(is_open=False)) == []
    assert needed(BROKEN, issue(is_open=False)) == [(ActionKind.REOPEN, 7)]


def test_each_cause_has_an_issue_of_its_own():
    other = evolve(BROKEN, causes=(CAUSE, evolve(CAUSE, id="cd", title="pandas 3 breaks pytest")))
    assert needed(other, issue()) == [(ActionKind.OPEN, 0)]
    alone = evolve(other, causes=other.causes[1:])
    assert needed(alone, issue()) == [(ActionKind.OPEN, 0), (ActionKind.CLOSE, 7)]


@pytest.mark.parametrize(
    "other", [issue(3, night=evolve(BROKEN, name="Other tests")), Issue(4, "help", "please", True)]
)
def test_issues_of_others_and_of_other_watches_are_left_alone(other):
    assert needed(PASSES, other) == []
    assert needed(BROKEN, other) == [(ActionKind.OPEN, 0)]


def test_the_exit_code_tells_how_sure_it_is_and_an_unsure_night_leaves_the_issues_alone():
    assert {status: (status.exit_code, evolve(BROKEN, status=status).is_sure) for status in NightStatus} == {
        NightStatus.PASSES: (0, True),
        NightStatus.BROKEN: (1, True),
        NightStatus.NOT_PACKAGES: (3, False),
        NightStatus.UNKNOWN: (3, False),
    }


def test_a_long_report_is_cut_to_the_limit_of_github():
    tests = tuple(f"tests/{'x' * 200}_{i}.py::test" for i in range(10))
    many = evolve(ANSWER, failures=changed(ANSWER, tests=tests).failures * 60)
    (action,) = actions(evolve(BROKEN, causes=(evolve(CAUSE, report=WATCH._report(many, None)),)).issues, [])
    assert 50_000 < len(action.body) < 65_536


# -- the last green packages

LOCK = Lock("3.11.7", "linux", [Pin("numpy", "1.26.4"), Pin("flask-sqlalchemy", "3.0.5"), Pin("odd.name", "1!2.0rc1")])


def test_the_last_green_packages_are_requirements_and_read_back(tmp_path):
    keep_last_green(tmp_path / "state", LOCK, ["a.py::odd\n# text"], "2025-07-31")
    green = read_last_green(tmp_path / "state")
    assert green.versions == {"numpy": "1.26.4", "flask-sqlalchemy": "3.0.5", "odd.name": "1!2.0rc1"}
    assert (green.date, green.failing) == ("2025-07-31", ("a.py::odd\n# text",))
    lines = [line for line in (tmp_path / "state" / FILE).read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 3
    assert all("==" in str(Requirement(line)) for line in lines)


def test_there_is_no_file_before_the_first_green_night(tmp_path):
    assert read_last_green(tmp_path / "nowhere") is None


@pytest.mark.parametrize("text", ["numpy==1.0\n", "", "# harness watch: {}\n", "# harness watch: {oh}\nx==1\n"])
def test_a_foreign_file_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UserMistake, match=FILE):
        read_last_green(tmp_path)
