"""One issue reports what broke a project's tests: opened once, updated, and closed when they pass again."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from markdown_it import MarkdownIt
from support import changed, make_answer

from harness.bisection.sections import sections_of
from harness.model import Change, Signature
from harness.model.culprit import Evidence
from harness.store import as_record, read_record
from harness.watch.tracker import ActionKind, Issue, actions
from harness.watch.watch import SCHEMA, NightStatus, ProjectNight, issue_of, marker, watch_report

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
    flaky=("test_a.py::test_flaky",),
    constraints=("numpy<2",),
    constraints_verified=True,
    changes=(Change("numpy", "1.26.4", "2.3.2"), Change("new", None, "1")),
)
BROKEN = ProjectNight(
    "Newest packages",
    "pytest -q tests",
    "2025-07-31",
    NightStatus.BROKEN,
    "14 tests fail since numpy 2.0.0.",
    green="2023-05-01",
    constraints=("numpy<2",),
    sections=sections_of(ANSWER),
)
PASSES = evolve(BROKEN, status=NightStatus.PASSES, constraints=(), sections=())


def issue(number=7, night=BROKEN, *, is_open=True, **changes):
    (action,) = actions(issue_of(night), [])
    return Issue(number, changes.get("title", action.title), changes.get("body", action.body), is_open)


def test_the_report_names_tests_release_and_remedy():
    report = watch_report(BROKEN)
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
        assert text in report
    assert "harness bisect --run 'pytest -q tests' --good 2023-05-01 --bad 2025-07-31" in report


def test_a_message_contains_no_markup_and_mentions_nobody():
    page = MarkdownIt("commonmark").enable("table").render(watch_report(BROKEN))
    assert "test_a.py::test_0[`" in page
    assert "@me" not in page


def test_the_night_is_kept_as_json(tmp_path):
    told = as_record(BROKEN, SCHEMA)
    assert (told["status"], told["green"], told["sections"][0]["title"]) == ("broken", "2023-05-01", "Answer")
    (tmp_path / "night.json").write_text(json.dumps(told), encoding="utf-8")
    assert read_record(tmp_path / "night.json", ProjectNight, SCHEMA) == BROKEN


def test_a_broken_night_opens_one_issue_only_once():
    (action,) = actions(issue_of(BROKEN), [])
    assert action.kind is ActionKind.OPEN
    assert marker(BROKEN.name) in action.body
    assert actions(issue_of(BROKEN), [issue()]) == ()
    windows = issue(body=issue().body.replace("\n", "\r\n"))
    assert actions(issue_of(BROKEN), [windows]) == ()


def test_another_answer_updates_the_issue():
    later = evolve(BROKEN, sentence="15 tests fail since numpy 2.0.0.")
    (action,) = actions(issue_of(later), [issue()])
    assert (action.kind, action.number) == (ActionKind.UPDATE, 7)
    assert "15 tests" in action.title


def test_passing_tests_close_the_issue_and_a_new_break_opens_another():
    (action,) = actions(issue_of(PASSES), [issue()])
    assert (action.kind, action.number) == (ActionKind.CLOSE, 7)
    closed = issue(is_open=False)
    assert actions(issue_of(PASSES), [closed]) == ()
    assert [one.kind for one in actions(issue_of(BROKEN), [closed])] == [ActionKind.OPEN]


@pytest.mark.parametrize("status", [NightStatus.UNKNOWN, NightStatus.NOT_PACKAGES])
def test_an_unsure_night_leaves_the_issue_alone(status):
    assert actions(issue_of(evolve(BROKEN, status=status)), [issue()]) == ()
    assert actions(issue_of(evolve(BROKEN, status=status)), []) == ()


def test_issues_of_others_and_of_other_watches_are_left_alone():
    other = issue(3, night=evolve(BROKEN, name="Other tests"))
    stranger = Issue(4, "numpy is broken", "please help", True)
    assert actions(issue_of(PASSES), [other, stranger]) == ()
    assert [one.kind for one in actions(issue_of(BROKEN), [other, stranger])] == [ActionKind.OPEN]


def test_the_first_of_two_open_issues_is_kept():
    assert [(one.kind, one.number) for one in actions(issue_of(BROKEN), [issue(9), issue(7)])] == [
        (ActionKind.CLOSE, 9)
    ]


def test_a_long_report_is_cut_to_the_limit_of_github():
    tests = tuple(f"tests/{'x' * 200}_{i}.py::test" for i in range(10))
    many = changed(ANSWER, tests=tests).failures * 60
    (action,) = actions(issue_of(evolve(BROKEN, sections=sections_of(evolve(ANSWER, failures=many)))), [])
    assert 50_000 < len(action.body) < 65_536


def test_the_exit_code_tells_how_sure_it_is():
    assert {status: status.exit_code for status in NightStatus} == {
        NightStatus.PASSES: 0,
        NightStatus.BROKEN: 1,
        NightStatus.NOT_PACKAGES: 3,
        NightStatus.UNKNOWN: 3,
    }
