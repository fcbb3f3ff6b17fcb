"""The tracker is updated to match the breaks, and left alone if it does."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from night_cells import FIRST, SECOND, known

from harness.watch.record import Fix
from harness.watch.tracker import Action, ActionKind, Issue, actions, body_of, issues_of

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


def brought(breaks, issues):
    for action in actions(issues_of(breaks, {"ab": REPORT}), issues):
        issues = after(action, issues)
    return issues


states = st.builds(
    lambda id_, more, is_closed: known(
        id_,
        cells=("nightly: a", "nightly: b")[: 1 + more],
        closed=SECOND if is_closed else "",
        fixes=(Fix("nightly: a", "helper 1.2 -> 1.3", SECOND),) if is_closed else (),
    ),
    st.sampled_from(["ab", "cd", "ef"]),
    st.booleans(),
    st.booleans(),
)
breaks_of_a_night = st.lists(states, unique_by=lambda known: known.id, max_size=3)


@given(st.lists(breaks_of_a_night, min_size=1, max_size=4))
def test_each_break_has_at_most_one_issue_in_the_matching_state(nights):
    """Whatever happens from night to night; repeating an action changes nothing."""
    issues: list[Issue] = [Issue(1, "somebody else's", "no marker", is_open=True)]
    for breaks in nights:
        issues = brought(breaks, issues)
        assert actions(issues_of(breaks, {"ab": REPORT}), issues) == ()
        for known_ in breaks:
            mine = [issue for issue in issues if f"harness-break: {known_.id} " in issue.body]
            assert len(mine) <= 1
            assert [issue.is_open for issue in mine] in ([known_.is_open], [] if not known_.is_open else [True])
    assert issues[0] == Issue(1, "somebody else's", "no marker", is_open=True)


def test_an_issue_describes_the_break_and_contains_its_report():
    body = body_of(known(fixes=(Fix("nightly: a", "helper 1.2 -> 1.3", SECOND),), closed=SECOND), REPORT)
    assert body.startswith("<!-- harness-break: ab -->\n\nhelper 1.2 broke it.\n")
    assert "- `nightly: a` with helper 1.2 -> 1.3, in the night of 2024-02-02" in body
    assert body.endswith("---\n\n**It broke.**\n")


def test_a_report_too_long_for_an_issue_is_linked():
    body = body_of(known(), "x" * 70_000)
    assert len(body) < 65_536
    assert "The report is `reports/ab.md`" in body


def test_line_endings_of_the_tracker_are_not_a_change():
    there = Issue(3, known().title, body_of(known(), REPORT).replace("\n", "\r\n"), is_open=True)
    assert actions(issues_of([known()], {"ab": REPORT}), [there]) == ()
    changed = issues_of([known(first_seen=FIRST, cells=("x: y",))], {"ab": REPORT})
    assert actions(changed, [there])[0].kind is ActionKind.UPDATE
