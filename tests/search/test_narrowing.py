"""Narrowing: it always ends, finds a sufficient set, and tries likely candidates first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import Narrowing

CHANGES = "abcdefghij"


def driven(search, verdict_of, most=2000):
    """Every requested set, in order, one at a time."""
    asked = []
    while not search.done:
        (candidate,) = search.ask(1)
        assert candidate not in asked
        asked.append(candidate)
        assert len(asked) < most
        search.tell(candidate, verdict_of(candidate))
    return asked


def closing(needs):
    def closed(changes):
        found, border = set(changes), list(changes)
        while border:
            for other in needs.get(border.pop(), ()):
                if other not in found:
                    found.add(other)
                    border.append(other)
        return frozenset(found)

    return closed


SETS = st.frozensets(st.sampled_from(CHANGES), min_size=1)
NEEDS = st.dictionaries(st.sampled_from(CHANGES), st.frozensets(st.sampled_from(CHANGES), max_size=2), max_size=5)
WEIGHTS = st.dictionaries(st.sampled_from(CHANGES), st.floats(0, 100, allow_nan=False))


@given(SETS, WEIGHTS)
def test_it_finds_exactly_a_sufficient_set(wanted, weights):
    search = Narrowing(CHANGES, weights=weights)
    driven(search, lambda changes: Verdict.BAD if wanted <= changes else Verdict.GOOD)
    assert search.result.minimal == wanted
    assert search.result.is_minimal
    assert not search.result.unproven


@given(SETS, WEIGHTS, NEEDS)
def test_requests_are_closed_and_the_result_is_minimal(wanted, weights, needs):
    closed = closing(needs)
    search = Narrowing(CHANGES, weights=weights, closed=closed)
    asked = driven(search, lambda changes: Verdict.BAD if wanted <= changes else Verdict.GOOD)
    assert all(closed(candidate) == candidate for candidate in asked)
    assert search.result.minimal == closed(wanted)


@given(st.randoms(use_true_random=False), WEIGHTS, NEEDS)
def test_it_ends_whatever_the_verdicts(chance, weights, needs):
    search = Narrowing(CHANGES, weights=weights, closed=closing(needs))
    driven(search, lambda _: chance.choice(list(Verdict)))
    told = search.result
    assert told.minimal
    assert told.unproven <= told.minimal


@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_it_ends_even_if_requirements_grow_during_the_search(chance, growth):
    needs = {}
    search = Narrowing(CHANGES, closed=lambda changes: closing(needs)(changes))

    def verdict_of(_):
        if chance.random() < 0.5 and sum(map(len, needs.values())) < growth:
            needs.setdefault(chance.choice(CHANGES), set()).add(chance.choice(CHANGES))
            search.refresh()
        return chance.choice(list(Verdict))

    driven(search, verdict_of)


PARTS = st.lists(st.frozensets(st.sampled_from("abcde"), min_size=1), max_size=4)


@given(st.frozensets(st.sampled_from("abcde"), min_size=1), WEIGHTS, NEEDS, PARTS)
def test_what_a_set_needs_outside_the_changes_comes_along(wanted, weights, needs, parts):
    closed = closing(needs)
    search = Narrowing("abcde", weights=weights, closed=closed, complete=closed, parts=parts)
    asked = driven(search, lambda changes: Verdict.BAD if wanted <= changes else Verdict.GOOD)
    assert all(closed(candidate) == candidate for candidate in asked if candidate != search.result.minimal)
    assert search.result.is_minimal
    expected = closed(wanted)
    assert search.result.minimal == (expected if not expected >= set("abcde") else frozenset("abcde"))


@given(st.randoms(use_true_random=False), WEIGHTS, NEEDS, NEEDS, PARTS, st.booleans(), st.integers(1, 3))
def test_it_ends_whatever_is_needed_outside_the_changes(chance, weights, needs, others, parts, together, lanes):
    search = Narrowing(
        "abcde", weights=weights, closed=closing(needs), complete=closing(others), parts=parts, together=together
    )
    told = {}
    while not search.done:
        for candidate in search.ask(lanes):
            told.setdefault(candidate, chance.choice(list(Verdict)))
            search.tell(candidate, told[candidate])
        search.foresee(2)
        assert len(told) < 2000
    found = search.result
    assert found.unproven <= found.minimal
    assert found.minimal == frozenset("abcde") or told[found.minimal] is Verdict.BAD


def test_a_dominant_candidate_is_tried_alone():
    search = Narrowing(CHANGES, weights={"g": 30.0})
    assert search.ask(1) == (frozenset("g"),)


def test_likelier_candidates_are_tried_first_and_any_is_found_in_logarithmically_many_runs():
    search = Narrowing(range(1024))
    assert search.ask(1) == (frozenset({0}),)
    assert len(driven(search, lambda changes: Verdict.BAD if 777 in changes else Verdict.GOOD)) <= 21


def test_a_skipped_set_is_made_larger_and_then_smaller():
    search = Narrowing(CHANGES, weights={"a": 2.0})
    driven(search, lambda changes: Verdict.SKIP if "a" in changes else Verdict.BAD if "d" in changes else Verdict.GOOD)
    assert search.result.minimal == frozenset("d")
    assert search.result.unresolved >= 1


def test_a_candidate_that_was_never_left_out_is_unproven():
    search = Narrowing("ab")
    driven(search, lambda changes: Verdict.SKIP if changes == {"a"} else Verdict.GOOD)
    assert (search.result.minimal, search.result.unproven) == (frozenset("ab"), frozenset("b"))


def test_several_lanes_get_different_candidates():
    search = Narrowing(CHANGES, weights={"a": 9.0, "b": 8.0})
    asked = search.ask(3)
    assert len(set(asked)) == len(asked) == 3
    assert search.ask(1) == asked[:1]
    assert search.foresee(2) == asked[1:]
    assert search.remaining() > 0


@pytest.mark.parametrize("changes", ["", "aa"])
def test_empty_or_duplicate_candidates_are_refused(changes):
    with pytest.raises(ValueError, match="change"):
        Narrowing(changes)


def test_unknown_changes_and_contradictions_are_refused():
    search = Narrowing("abc")
    search.tell(frozenset("a"), Verdict.GOOD)
    with pytest.raises(ValueError, match="unknown"):
        search.tell(frozenset("z"), Verdict.GOOD)
    with pytest.raises(ValueError, match="before"):
        search.tell(frozenset("a"), Verdict.BAD)
