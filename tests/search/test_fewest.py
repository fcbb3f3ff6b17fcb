"""The fewest changes that flip a verdict together, with planted causes, with and without unjudgeable sets."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import Narrowing, Search


def fewest(changes):
    """A search for the fewest changes, the likeliest first, that assumes that a superset of a BAD set is BAD."""
    return Narrowing(changes, leaves_out=False)


def planted(*cause, unresolved=lambda s: False):
    """BAD if all changes of the cause are applied, unless the set cannot be judged."""

    def verdict(candidate):
        if unresolved(candidate):
            return Verdict.SKIP
        return Verdict.BAD if frozenset(cause) <= candidate else Verdict.GOOD

    return verdict


def drive(search: Search[frozenset[int]], verdict, lanes=1, pick=0):
    """Answer until done; return all candidates in the order they finished."""
    ended = []
    while waiting := search.ask(lanes):
        assert search.ask(lanes) == waiting
        candidate = waiting[pick % len(waiting)]
        assert candidate not in ended
        search.tell(candidate, verdict(candidate))
        ended.append(candidate)
    assert search.done
    assert search.remaining() == 0
    return ended


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_planted_cause_among_nine_is_found(size):
    """Single changes, pairs and interacting triples, wherever they are."""
    for cause in combinations(range(9), size):
        search = fewest(range(9))
        drive(search, planted(*cause))
        assert search.result.minimal == frozenset(cause)


def test_a_likely_cause_takes_few_runs_and_any_one_logarithmically_many():
    assert len(drive(fewest(range(1024)), planted(2))) <= 5
    assert len(drive(fewest(range(1024)), planted(777))) <= 21


def test_the_ends_are_never_run():
    for n in range(1, 6):
        search = fewest(range(n))
        ended = drive(search, planted(*range(n)))
        assert frozenset() not in ended
        assert frozenset(range(n)) not in ended
        assert search.result.minimal == frozenset(range(n))


def test_a_set_that_cannot_be_judged_is_made_larger():
    """Changes 3 and 4 work only together; the cause is 4 and 9."""
    search = fewest(range(12))
    drive(search, planted(4, 9, unresolved=lambda s: (3 in s) != (4 in s)))
    assert search.result.minimal == {3, 4, 9}
    assert search.result.unresolved > 0


def test_several_lanes_also_get_what_may_follow():
    search = fewest(range(8))
    wanted = search.ask(3)
    assert len(set(wanted)) == 3
    assert wanted[0] == search.ask(1)[0]
    for candidate in wanted[1:]:
        search.tell(candidate, planted(6)(candidate))
    drive(search, planted(6))
    assert search.result.minimal == {6}


@pytest.mark.parametrize("changes", [[], [1, 1]])
def test_empty_or_duplicate_changes_are_refused(changes):
    with pytest.raises(ValueError, match="at least one change"):
        fewest(changes)


def test_invalid_verdicts_are_refused():
    search = fewest("abc")
    search.tell(frozenset("a"), Verdict.GOOD)
    with pytest.raises(ValueError, match="was told good before"):
        search.tell(frozenset("a"), Verdict.BAD)
    with pytest.raises(ValueError, match="unknown changes"):
        search.tell(frozenset("xy"), Verdict.GOOD)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(0, 5), st.randoms())
def test_any_verdicts_end_in_a_set_that_was_bad_or_is_not_shown(n, lanes, pick, random):
    """Whatever the verdicts, the search ends, and its result is all changes unless a run has shown a smaller set."""
    verdicts = {}

    def verdict(candidate):
        return verdicts.setdefault(candidate, random.choice(list(Verdict)))

    search = fewest(range(n))
    while waiting := search.ask(lanes):
        assert not set(search.foresee(2)).intersection((waiting[0], *verdicts))
        candidate = waiting[pick % len(waiting)]
        search.tell(candidate, verdict(candidate))
    result = search.result
    assert search.done
    assert result.minimal
    assert result.minimal == set(range(n)) or verdicts[result.minimal] is Verdict.BAD
    assert not result.is_minimal  # none of its changes was left out
    assert result.runs == len(verdicts)
