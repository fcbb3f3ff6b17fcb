"""Parts are tried alone before sets are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import AloneFirst, Narrowing


def _search(changes, parts, complete=lambda part: part):
    return AloneFirst(parts, complete, Narrowing(tuple(changes), closed=complete))


@given(st.data())
def test_a_sufficient_change_is_found_whatever_else_cannot_be_judged(data):
    """A change that makes every run with it a skip spoils no other one."""
    changes = [f"c{n}" for n in range(data.draw(st.integers(2, 12)))]
    culprit, poison = data.draw(st.permutations(changes))[:2]
    search = _search(changes, [frozenset({change}) for change in data.draw(st.permutations(changes))])
    runs = 0
    while not search.done:
        (candidate,) = search.ask(1)
        verdict = Verdict.SKIP if poison in candidate else Verdict.BAD if culprit in candidate else Verdict.GOOD
        search.tell(candidate, verdict)
        runs += 1
    assert search.result.minimal == {culprit}
    assert runs <= len(changes)


def test_a_part_with_several_changes_is_narrowed():
    """A whole function is enough, and then its one line."""
    search = _search("abcd", [frozenset("d"), frozenset("abc")])
    told = []
    while not search.done:
        (candidate,) = search.ask(1)
        told.append("".join(sorted(candidate)))
        search.tell(candidate, Verdict.BAD if "b" in candidate else Verdict.GOOD)
    assert search.result.minimal == {"b"}
    assert told[:2] == ["d", "abc"]


def test_a_part_that_was_cleared_with_another_one_is_not_run():
    """All its changes were in a set that was not enough."""
    needs = {"a": frozenset("ab")}
    complete = lambda part: frozenset().union(*(needs.get(one, frozenset(one)) for one in part))  # noqa: E731
    search = _search("abc", [frozenset("a"), frozenset("b"), frozenset("c")], complete)
    search.tell(frozenset("ab"), Verdict.GOOD)
    assert search.ask(3) == (frozenset("c"),)


def test_several_lanes_get_several_parts():
    """Parts don't depend on each other's verdicts."""
    search = _search("abc", [frozenset("a"), frozenset("b"), frozenset("c")])
    assert search.ask(2) == (frozenset("a"), frozenset("b"))
    assert search.foresee(1) == (frozenset("b"),)
