"""Parts are tried alone before sets are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import Narrowing


def _search(changes, parts, complete=lambda part: part):
    return Narrowing(tuple(changes), closed=complete, parts=parts, complete=complete)


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
    assert runs <= len(changes) + 1  # the first eight are tried together, too


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


def test_the_parts_in_a_folder_that_is_enough_are_tried_by_what_they_tell():
    """A folder is enough; of its files, the likeliest half comes first, then its lines."""
    parts = [frozenset("abcdefgh"), frozenset("ab"), frozenset("cdef"), frozenset("gh"), *map(frozenset, "abcdefgh")]
    weights = dict.fromkeys("abcdefghij", 1.0) | {"c": 2.0}
    search = Narrowing(tuple("abcdefghij"), weights=weights, parts=parts)
    told = []
    while not search.done:
        (candidate,) = search.ask(1)
        told.append("".join(sorted(candidate)))
        search.tell(candidate, Verdict.BAD if "c" in candidate else Verdict.GOOD)
    assert told == ["abcdefgh", "cdef", "c"]


def test_no_set_has_a_change_that_could_not_be_judged_alone():
    """Two changes are only enough together; another one never runs."""
    search = _search("abcdefgh", [frozenset(change) for change in "abcdefgh"])
    told = []
    while not search.done:
        (candidate,) = search.ask(1)
        told.append(candidate)
        verdict = Verdict.BAD if candidate >= frozenset("bf") else Verdict.GOOD
        search.tell(candidate, Verdict.SKIP if "d" in candidate else verdict)
    assert search.result.minimal == frozenset("bf")
    assert [candidate for candidate in told if "d" in candidate] == [frozenset("d")]


def test_changes_that_cannot_be_judged_alone_are_part_of_the_smallest_set():
    """It runs only with both of them, and with a third one it is enough."""
    search = _search("abcdefgh", [frozenset(change) for change in "abcdefgh"])
    while not search.done:
        (candidate,) = search.ask(1)
        pair = len(candidate & frozenset("bf"))
        verdict = Verdict.SKIP if pair == 1 else Verdict.BAD if candidate >= frozenset("bfd") else Verdict.GOOD
        search.tell(candidate, verdict)
    assert search.result.minimal == frozenset("bfd")


def runs_until_found(changes, needed, skipped=()):
    """How many runs a search takes whose changes are only enough together; those in `skipped` never run."""
    weights = {change: 1 / (change + 1) for change in changes}
    search = Narrowing(changes, weights=weights, parts=[frozenset({one}) for one in changes])
    runs = 0
    while not search.done and runs < 500:
        (candidate,) = search.ask(1)
        verdict = Verdict.BAD if needed <= candidate else Verdict.GOOD
        search.tell(candidate, verdict if candidate.isdisjoint(skipped) else Verdict.SKIP)
        runs += 1
    assert search.result.minimal == needed
    return runs


@pytest.mark.parametrize("needed", [{1, 3}, {2, 11}, {0, 5, 7}, {12, 29}])
def test_likely_changes_that_are_enough_together_are_found_among_thousands(needed):
    assert runs_until_found(range(3000), frozenset(needed)) < 80


def test_changes_that_never_run_are_in_no_union():
    assert runs_until_found(range(3000), frozenset({2, 11}), skipped=range(0, 3000, 5)) < 80
