"""Bisections with a noisy metric: how often noise is named, what a stable metric costs, and the size of the
difference."""

from __future__ import annotations

import math
from random import Random

import pytest

from harness.model.verdict import Verdict
from harness.search import BisectionStatus, Effect, Gauges, SureBisection
from harness.search.measured import _rank, effect_of

BOUND = 10.0
NAMED = (BisectionStatus.FOUND, BisectionStatus.FIXED)


def investigate(value, count=24, *, by_number=True, **more):
    """The search after its last run, and the number of runs; a value above the bound is bad."""
    seen, runs = {}, 0
    gauges = Gauges(number=seen.get) if by_number else Gauges()
    ends = {"good": count - 1, "bad": 0} if more.get("find_fix") else {"good": 0, "bad": count - 1}
    search = SureBisection(count, gauges=gauges, **ends, **more)
    while waiting := search.ask():
        assert search.ask() == waiting
        assert not search.done
        assert search.result.status is BisectionStatus.OPEN
        assert search.remaining() > 0
        seen[waiting[0]] = value(waiting[0].position)
        search.tell(waiting[0], Verdict.BAD if not seen[waiting[0]] <= BOUND else Verdict.GOOD)
        runs += 1
    assert search.remaining() == 0
    return search, runs


@pytest.mark.parametrize(("runs", "critical"), [(4, -1), (5, 0), (6, 2), (7, 4), (8, 7), (10, 16), (12, 27), (20, 105)])
def test_the_interval_matches_published_critical_values(runs, critical):
    """Mann and Whitney's U for two samples of equal size, two-sided at 0.01, from published tables."""
    assert _rank(runs, runs, 0.99) == critical + 1


def test_the_interval_covers_the_true_difference():
    dice, missed = Random(1), 0
    for _ in range(300):
        effect = effect_of([dice.gauss(5, 1) for _ in range(7)], [dice.gauss(6, 1) for _ in range(9)], 0.99)
        missed += not effect.low <= 1.0 <= effect.high
    assert missed <= 9


@pytest.mark.parametrize("find_fix", [False, True])
@pytest.mark.parametrize(("spread", "step"), [(0.0, 0.1), (0.01, 8.0)])
def test_a_stable_metric_takes_as_few_runs_as_an_exception_does(spread, step, find_fix):
    for change in (1, 9, 23):

        def value(position, change=change, dice=Random(2)):  # noqa: B008
            is_bad = (position >= change) != find_fix
            return BOUND + (step if is_bad else -step) / 2 + spread * dice.random()

        measured, runs = investigate(value, find_fix=find_fix)
        _, without = investigate(value, find_fix=find_fix, by_number=False)
        assert runs == without
        assert measured.result.boundary == (change - 1, change)
        assert measured.result.status in NAMED
        assert measured.result.effect.is_clear
        assert measured.result.effect.difference == pytest.approx(step, rel=0.02)


def test_a_noisy_metric_is_run_until_its_interval_excludes_zero():
    dice = Random(3)
    for change in (1, 9, 23):
        search, _ = investigate(lambda p, c=change: (12 if p >= c else 8) + dice.uniform(-1.9, 1.9))
        effect = search.result.effect
        assert (search.result.status, search.result.first_bad) == (BisectionStatus.FOUND, change)
        assert (effect.good_runs, effect.bad_runs, effect.confidence) == (5, 5, 0.99)
        assert 0 < effect.low <= effect.difference <= effect.high


def test_noise_across_the_bound_is_not_named():
    """The metric is the same everywhere; a plain bisection names some release every time."""
    dice = Random(4)
    named = 0
    for _ in range(12):
        search, runs = investigate(lambda _: dice.gauss(BOUND, 1), 8)
        named += search.result.status in NAMED
        assert runs <= 200
    assert named <= 1


def test_a_step_is_found_through_noise():
    dice = Random(5)
    right = wrong = 0
    for _ in range(20):
        change = dice.randrange(1, 16)
        search, _ = investigate(lambda p, c=change: dice.gauss(11.5 if p >= c else 8.5, 1.2), 16)
        if search.result.status in NAMED:
            assert search.result.effect.is_clear
            right += search.result.first_bad == change
            wrong += search.result.first_bad != change
    assert right >= 16
    assert wrong <= 1


def test_a_small_drift_across_the_bound_is_not_named():
    """Each release adds a little: none is the culprit, although the failure rate changes. In the long run 1 search in
    60 names a release; more than 2 of 16 happen in 1 of 500 tests."""
    dice = Random(6)
    ended = [investigate(lambda p: 9 + p / 8 + dice.uniform(-0.6, 0.6), 16)[0] for _ in range(16)]
    assert sum(search.result.status in NAMED for search in ended) <= 2


def test_a_release_is_not_named_without_a_difference_in_the_metric():
    """Half of such searches end at a boundary whose two sides do not differ in the metric."""
    dice = Random(1)
    ended = [investigate(lambda p: 9.3 + p / 5 + dice.uniform(-0.5, 0.5), 8)[0].result for _ in range(12)]
    unclear = [r for r in ended if r.boundary is not None and not r.effect.is_clear]
    assert unclear
    assert {result.status for result in unclear} == {BisectionStatus.INCONCLUSIVE}


def test_an_infinite_metric_is_confirmed_like_an_exception():
    search, runs = investigate(lambda p: math.nan if p >= 7 else 1.0)
    _, without = investigate(lambda p: math.nan if p >= 7 else 1.0, by_number=False)
    assert search.result.first_bad == 7
    assert search.result.effect is None
    assert runs == without


def test_a_requested_number_of_runs_is_exact():
    search, runs = investigate(lambda p: 12.0 if p >= 7 else 8.0, confirm=0)
    assert search.result.first_bad == 7
    assert isinstance(search.result.effect, Effect)
    assert not search.result.effect.is_clear
    assert runs <= 7
