"""The tracker is updated to match the causes, and left alone if it does; and which repository's tracker it is."""

from __future__ import annotations

import subprocess

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from night_cells import FIRST, SECOND, cause

from harness.errors import UserMistake
from harness.watch.state import Fix
from harness.watch.tracker import Action, ActionKind, Issue, actions, body_of, issues_of, this_repository

REPORT = "**It broke.**\n"


def after(action: Action, issues: list[Issue]) -> list[Issue]:
    """The tracker after one action."""
    if action.kind is ActionKind.OPEN:
        return [*issues, Issue(len(issues) + 1, action.title, action.body.rstrip("\n"), is_open=True)]
    changes = {
        ActionKind.UPDATE: {"title": action.title, "body": action.body.rstrip("\n")},
        ActionKind.CLOSE: {"is_open": False},
        ActionKind.REOPEN: {"is_open": True},
    }[action.kind]
    return [evolve(issue, **changes) if issue.number == action.number else issue for issue in issues]


def brought(causes, issues):
    for action in actions(issues_of(causes, {"ab": REPORT}), issues):
        issues = after(action, issues)
    return issues


states = st.builds(
    lambda id_, more, is_closed: cause(
        id_,
        cells=("nightly: a", "nightly: b")[: 1 + more],
        closed=SECOND if is_closed else "",
        fixes=(Fix("nightly: a", "helper 1.2 -> 1.3", SECOND),) if is_closed else (),
    ),
    st.sampled_from(["ab", "cd", "ef"]),
    st.booleans(),
    st.booleans(),
)
causes_of_a_night = st.lists(states, unique_by=lambda one: one.id, max_size=3)


@given(st.lists(causes_of_a_night, min_size=1, max_size=4))
def test_each_cause_has_at_most_one_issue_in_the_matching_state(nights):
    """Whatever happens from night to night; repeating an action changes nothing."""
    issues: list[Issue] = [Issue(1, "somebody else's", "no marker", is_open=True)]
    for causes in nights:
        issues = brought(causes, issues)
        assert actions(issues_of(causes, {"ab": REPORT}), issues) == ()
        for known in causes:
            mine = [issue for issue in issues if f"harness-break: {known.id} " in issue.body]
            assert len(mine) <= 1
            assert [issue.is_open for issue in mine] in ([known.is_open], [] if not known.is_open else [True])
    assert issues[0] == Issue(1, "somebody else's", "no marker", is_open=True)


def test_an_issue_describes_the_cause_and_contains_its_report():
    body = body_of(cause(fixes=(Fix("nightly: a", "helper 1.2 -> 1.3", SECOND),), closed=SECOND), REPORT)
    assert body.startswith("<!-- harness-break: ab -->\n\nhelper 1.2 broke it.\n")
    assert "- `nightly: a` with helper 1.2 -> 1.3, in the night of 2024-02-02" in body
    assert body.endswith("---\n\n**It broke.**\n")


def test_a_report_too_long_for_an_issue_is_linked():
    body = body_of(cause(), "x" * 70_000)
    assert len(body) < 65_536
    assert "The report is `reports/ab.md`" in body


def test_line_endings_of_the_tracker_are_not_a_change():
    there = Issue(3, cause().title, body_of(cause(), REPORT).replace("\n", "\r\n"), is_open=True)
    assert actions(issues_of([cause()], {"ab": REPORT}), [there]) == ()
    changed = issues_of([cause(first_seen=FIRST, cells=("x: y",))], {"ab": REPORT})
    assert actions(changed, [there])[0].kind is ActionKind.UPDATE


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:some-one/a.project.git",
        "https://github.com/some-one/a.project",
        "https://github.com/some-one/a.project.git",
        "ssh://git@github.com/some-one/a.project.git",
    ],
)
def test_the_workflow_or_else_the_remote_names_the_repository(tmp_path, address):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", address], check=True)
    assert this_repository({}, tmp_path) == "some-one/a.project"
    assert this_repository({"GITHUB_REPOSITORY": "some-one/project"}, tmp_path) == "some-one/project"


def test_without_either_no_repository_is_known(tmp_path):
    with pytest.raises(UserMistake, match="can't tell which repository"):
        this_repository({}, tmp_path)
