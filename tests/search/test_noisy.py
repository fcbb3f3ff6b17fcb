"""The noisy search: between two unknown failure rates."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from harness.model.boundary import Counts
from harness.model.verdict import Verdict
from harness.search import BisectionStatus, NoisySearch, Trial
from harness.search.rates import FLAKY, RATES, TRUSTED_ENDS, UNKNOWN, Posterior


def investigate(count, change, before, after, dice, lanes=1, **more):
    """The result and the number of runs of one simulated search."""
    search, runs = NoisySearch(count, **more), 0
    while waiting := search.ask(lanes):
        trial = waiting[dice.randrange(len(waiting))]
        rate = after if change is not None and trial.position >= change else before
        search.tell(trial, Verdict.BAD if dice.random() < rate else Verdict.GOOD)
        runs += 1
    return search.result, runs


@pytest.mark.parametrize(("before", "after", "most"), [(0, 0.5, 50), (0.05, 0.95, 23), (0, 0.9, 23)])
def test_a_changed_failure_rate_is_found_in_few_runs(before, after, most):
    dice, right, spent = Random(4), 0, 0
    for _ in range(40):
        change = dice.randrange(1, 32)
        result, runs = investigate(32, change, before, after, dice)
        right += result.first_bad == change and result.status is BisectionStatus.FOUND
        spent += runs
    assert right >= 38
    assert spent / 40 <= most


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_no_release_is_named_if_the_rate_is_constant(rate):
    dice, ended = Random(5), Counter()
    for _ in range(40):
        result, _ = investigate(32, None, rate, rate, dice)
        ended[result.status] += 1
    assert ended[BisectionStatus.FOUND] <= 1
    if rate == 0.0:
        assert set(ended) == {BisectionStatus.NO_FAILURE}
    if rate == 1.0:
        assert set(ended) == {BisectionStatus.NOT_A_REGRESSION}


@pytest.mark.parametrize(("before", "after", "most"), [(0, 0.5, 29), (0.05, 0.95, 16), (0, 1, 13)])
def test_trusted_ends_take_fewer_runs(before, after, most):
    dice, right, spent = Random(14), 0, 0
    for _ in range(40):
        change = dice.randrange(1, 32)
        result, runs = investigate(32, change, before, after, dice, confidence=0.96, prior=TRUSTED_ENDS)
        right += result.first_bad == change
        spent += runs
        assert result.trusts_ends
    assert right >= 36
    assert spent / 40 <= most


def test_the_only_possible_release_is_named_after_both_sides_ran():
    """With trusted ends the oldest boundary is certain before the good end has run."""
    result, runs = investigate(32, 1, 0, 1, Random(1), confidence=0.96, prior=TRUSTED_ENDS)
    assert (result.status, result.last_good, result.first_bad) == (BisectionStatus.FOUND, 0, 1)
    assert runs <= 12


def test_a_trusted_good_end_that_always_fails_names_nothing():
    result, runs = investigate(32, None, 1, 1, Random(1), confidence=0.96, prior=TRUSTED_ENDS)
    assert result.status is BisectionStatus.INCONCLUSIVE
    assert result.boundary is None
    assert runs <= 40


def test_a_fix_is_found_in_the_other_direction():
    dice = Random(6)
    search = NoisySearch(20, find_fix=True)
    while waiting := search.ask():
        fails = waiting[0].position < 12 and dice.random() < 0.7
        search.tell(waiting[0], Verdict.BAD if fails else Verdict.GOOD)
    assert (search.result.status, search.result.first_good) == (BisectionStatus.FIXED, 12)
    assert search.result.good_side.bad == 0
    assert search.result.bad_side.bad < search.result.bad_side.runs


def test_skipped_releases_are_not_named_or_run_forever():
    dice, asked = Random(7), Counter()
    search = NoisySearch(24)
    while waiting := search.ask():
        trial = waiting[0]
        asked[trial.position] += 1
        bad = trial.position >= 12 and dice.random() < 0.7
        skipped = 9 <= trial.position <= 13
        search.tell(trial, Verdict.SKIP if skipped else Verdict.BAD if bad else Verdict.GOOD)
    assert search.result.status is BisectionStatus.INCONCLUSIVE
    assert search.result.suspects == tuple(range(9, 15))
    assert search.result.boundary == (8, 14)
    assert max(asked[p] for p in range(9, 14)) <= 1


def test_the_cheaper_of_two_equally_informative_runs_is_taken():
    slow = NoisySearch(9, seconds=lambda position: 50.0 if position == 4 else 1.0)
    even = NoisySearch(9)
    for search in (slow, even):
        search.tell(Trial(8), Verdict.BAD)
        search.tell(Trial(0), Verdict.GOOD)
    at = even.ask()[0].position
    dear = NoisySearch(9, seconds=lambda position: 50.0 if position == at else 1.0)
    dear.tell(Trial(8), Verdict.BAD)
    dear.tell(Trial(0), Verdict.GOOD)
    assert dear.ask()[0].position != at


def test_several_lanes_get_different_runs():
    search = NoisySearch(64)
    search.tell(Trial(63), Verdict.BAD)
    first = search.ask(4)
    assert len(set(first)) == 4
    search.tell(first[2], Verdict.GOOD)
    assert set(first) - {first[2]} <= set(search.ask(4))


@pytest.mark.parametrize("prior", [UNKNOWN, FLAKY, TRUSTED_ENDS])
def test_the_posterior_equals_the_sum_over_boundaries_and_rates(prior):
    """Compared with the explicit sum."""
    told = {0: Counts(0, 3), 2: Counts(1, 2), 3: Counts(2, 2)}
    weights = {}
    for cut in range(1, 5):
        total = 0.0
        for kind in prior.kinds:
            for i, q in enumerate(RATES):
                for j in range(i + 1, len(RATES)):
                    likely = kind.weight * kind.good[i] * kind.bad[j]
                    for position, counts in told.items():
                        rate = RATES[j] if position >= cut else q
                        likely *= rate**counts.bad * (1 - rate) ** (counts.runs - counts.bad)
                    total += likely
        weights[cut] = total * (1 - prior.no_change) / 4
    none = prior.no_change * sum(
        w * math.prod(r**c.bad * (1 - r) ** (c.runs - c.bad) for c in told.values())
        for w, r in zip(prior.same, RATES, strict=True)
    )
    total = sum(weights.values()) + none
    posterior = Posterior.of(5, told, prior)
    assert posterior.none == pytest.approx(none / total)
    assert posterior.cuts[1:] == pytest.approx([weights[cut] / total for cut in range(1, 5)])


@pytest.mark.parametrize("prior", [UNKNOWN, FLAKY, TRUSTED_ENDS])
def test_before_any_run_the_posterior_is_the_prior(prior):
    """The weights of the kinds of change add up to 1 over the ordered pairs of rates."""
    posterior = Posterior.of(9, {}, prior)
    assert posterior.none == pytest.approx(prior.no_change)
    assert posterior.cuts[1:] == pytest.approx([(1 - prior.no_change) / 8] * 8)
