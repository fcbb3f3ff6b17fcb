"""Delta debugging with planted causes, with and without unjudgeable mixtures."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import DeltaDebugging, Search


def planted(*causes, unresolved=lambda s: False):
    """BAD if all changes of one cause are applied, unless the mixture cannot be judged."""
    sets = [frozenset(cause) for cause in causes]

    def verdict(candidate):
        if unresolved(candidate):
            return Verdict.SKIP
        return Verdict.BAD if any(cause <= candidate for cause in sets) else Verdict.GOOD

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


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_planted_cause_among_nine_is_found(size, lanes):
    """Single changes, pairs and interacting triples, wherever they are."""
    for cause in combinations(range(9), size):
        search = DeltaDebugging(range(9))
        drive(search, planted(cause), lanes, pick=2)
        assert search.result.minimal == frozenset(cause)
        assert search.result.is_minimal
        assert search.result.unproven == frozenset()


def test_a_single_change_among_many_takes_logarithmically_many_runs():
    assert len(drive(DeltaDebugging(range(1024)), planted([777]))) <= 20


def test_the_ends_are_never_run():
    for n in range(1, 6):
        search = DeltaDebugging(range(n))
        ended = drive(search, planted(range(n)))
        assert frozenset() not in ended
        assert frozenset(range(n)) not in ended
        assert search.result.minimal == frozenset(range(n))
        assert search.result.is_minimal


def test_unresolved_mixtures_are_neither_good_nor_bad():
    """Changes 3 and 4 import only together; the cause is 4 and 9."""
    search = DeltaDebugging(range(12))
    drive(search, planted([4, 9], unresolved=lambda s: (3 in s) != (4 in s)))
    assert search.result.minimal == {3, 4, 9}
    assert search.result.is_minimal
    assert search.result.unproven == {3, 4}
    assert search.result.unresolved > 0


def test_the_first_verdict_decides_a_round():
    """A late verdict of a cancelled run does not undo a step."""
    search = DeltaDebugging(range(8))
    first, second = search.ask(2)
    search.tell(second, Verdict.BAD)
    assert search.result.minimal == second
    search.tell(first, Verdict.BAD)
    assert search.result.minimal == second


def test_foreseen_candidates_can_be_skipped():
    search = DeltaDebugging(range(8))
    foreseen = search.foresee(3)
    assert len(foreseen) == 3
    assert not set(foreseen).intersection(search.ask())
    for candidate in foreseen:
        search.tell(candidate, Verdict.SKIP)
    drive(search, planted([6]))
    assert search.result.is_minimal
    assert 6 in search.result.minimal


@pytest.mark.parametrize("changes", [[], [1, 1]])
def test_empty_or_duplicate_changes_are_refused(changes):
    with pytest.raises(ValueError, match="at least one change"):
        DeltaDebugging(changes)


def test_invalid_verdicts_are_refused():
    search = DeltaDebugging("abc")
    search.tell(frozenset("a"), Verdict.GOOD)
    search.tell(frozenset("abc"), Verdict.BAD)
    with pytest.raises(ValueError, match="was told good before"):
        search.tell(frozenset("a"), Verdict.BAD)
    with pytest.raises(ValueError, match="unknown changes"):
        search.tell(frozenset("xy"), Verdict.GOOD)
    with pytest.raises(ValueError, match="all changes must be bad"):
        search.tell(frozenset("abc"), Verdict.GOOD)
    with pytest.raises(ValueError, match="no change must be good"):
        search.tell(frozenset(), Verdict.BAD)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(0, 5), st.randoms())
def test_any_verdicts_end_in_a_bad_1_minimal_set(n, lanes, pick, random):
    """With any verdicts, the resulting set was BAD and no set one smaller was."""
    verdicts = {}

    def verdict(candidate):
        return verdicts.setdefault(candidate, random.choice(list(Verdict)))

    search = DeltaDebugging(range(n))
    promised = []
    while waiting := search.ask(lanes):
        assert not set(search.foresee(2)).intersection((waiting[0], *verdicts))
        promised.append(search.remaining())
        candidate = waiting[pick % len(waiting)]
        search.tell(candidate, verdict(candidate))
    result = search.result
    assert result.is_minimal
    assert len(result.minimal) == n or verdicts[result.minimal] is Verdict.BAD
    assert result.runs == len(verdicts)
    assert all(left >= len(promised) - i for i, left in enumerate(promised))
    for change in result.minimal:
        rest = result.minimal - {change}
        assert not rest or verdicts[rest] is not Verdict.BAD
