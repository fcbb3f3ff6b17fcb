"""Failure rates: what is assumed about them before any run, and what runs show about where they change.

Positions run from the good end (0) to the bad end. Boundary c is the hypothesis that the positions before c fail at one
rate and those from c on at a higher one; one more hypothesis is that all fail at the same rate. The rates are unknown:
they are integrated out over a grid, under a prior.

The model is that of change-point detection with unknown rates (Fearnhead, "Exact and efficient Bayesian inference for
multiple changepoint problems", 2006, for one changepoint), with the constraint q < p on the two rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from operator import mul

from attrs import frozen

from harness.model.boundary import Counts

CONFIDENCE = 0.99


@frozen
class Noise:
    """What the user knows about a bug that may be flaky.

    `flaky`: one run does not distinguish good from bad. `confidence`: how sure an answer has to be, between 0 and 1.
    `trusts_ends`: there certainly is a change, and before it the bug never shows (except for rare noise).
    """

    flaky: bool = False
    confidence: float = CONFIDENCE
    trusts_ends: bool = False


_STEPS = 40
RATES = (0.0, *((i + 0.5) / _STEPS for i in range(_STEPS)), 1.0)

Density = tuple[float, ...]  # a weight for each of RATES


@frozen
class BugKind:
    """One kind of bug: its weight and the densities of its rate on both sides of the change."""

    weight: float
    good: Density
    bad: Density


@frozen(eq=False)  # compared by identity, so that it is a cheap cache key
class Prior:
    """Kinds of bugs, and the probability that there is no change (`no_change`).

    The weight of each kind is spread over the pairs of rates with good below bad. `same` is the density of the rate if
    there is no change.
    """

    kinds: tuple[BugKind, ...]
    same: Density
    no_change: float


def _mixed(*parts: tuple[float, float | tuple[float, float]]) -> Density:
    """Weights on the grid. Each part is a weight, and one end of the grid or the two parameters of a Beta density."""
    grid = [0.0] * len(RATES)
    for weight, shape in parts:
        if isinstance(shape, tuple):
            a, b = shape
            density = [rate ** (a - 1) * (1 - rate) ** (b - 1) for rate in RATES[1:-1]]
            for i, value in enumerate(density, start=1):
                grid[i] += weight * value / math.fsum(density)
        else:
            grid[0 if shape == 0.0 else -1] += weight
    return tuple(grid)


def _beta(a: float, b: float) -> Density:
    return _mixed((1.0, (a, b)))


def _kinds(*kinds: BugKind) -> tuple[BugKind, ...]:
    """The kinds with weights that sum to 1, each spread over the pairs of rates with good below bad."""
    every = math.fsum(kind.weight for kind in kinds)
    return tuple(BugKind(kind.weight / every / _in_order(kind), kind.good, kind.bad) for kind in kinds)


def _in_order(kind: BugKind) -> float:
    """The probability that the rate of the good side is the lower one."""
    return math.fsum(w * below for w, below in zip(kind.bad, (0.0, *accumulate(kind.good)), strict=False))


_NEVER = _mixed((1.0, 0.0))
_ANY = _beta(1.0, 1.0)
_NOISE = BugKind(0.0, _beta(2.0, 40.0), _beta(40.0, 2.0))  # deterministic, with noise
_SAME = _mixed((0.1, 0.0), (0.8, (1.0, 1.0)), (0.1, 1.0))  # flaky everywhere, or else it never fails or always fails

# Nothing is known about the bug. Many bugs show in every run or in none. Half of the weight is on any pair of rates:
# with less of it, too many of the releases that are named where both sides fail often are wrong.
UNKNOWN = Prior(
    _kinds(
        BugKind(0.26, _NEVER, _mixed((1.0, 1.0))),
        BugKind(0.10, _NEVER, _mixed((0.9, (10.0, 10.0)), (0.1, (1.0, 1.0)))),
        BugKind(0.10, _NOISE.good, _NOISE.bad),
        BugKind(0.54, _ANY, _ANY),
    ),
    _SAME,
    no_change=0.5,
)

# The bug is flaky. Much of the weight is on rates that are close. With less of it, most of the
# few releases that are named at a change from 0.1 to 0.3 are wrong: by luck, the rates look far apart.
FLAKY = Prior(
    _kinds(
        BugKind(0.15, _NEVER, _ANY),
        BugKind(0.50, _NEVER, _beta(5.0, 5.0)),
        BugKind(0.60, _NOISE.good, _NOISE.bad),
        BugKind(0.05, _beta(1.0, 4.0), _beta(1.5, 1.5)),
        BugKind(1.00, _beta(2.0, 14.0), _beta(4.0, 9.0)),
        BugKind(0.50, _ANY, _ANY),
    ),
    _SAME,
    no_change=0.5,
)

# The bug is flaky, and the user is sure of the ends: there is a change, and before it the bug never shows, or as
# rarely as it fails to show after it. Most of the weight is on bugs that show about half the time.
TRUSTED_ENDS = Prior(
    _kinds(
        BugKind(0.040, _NEVER, _ANY),
        BugKind(0.480, _NEVER, _beta(12.0, 12.0)),
        BugKind(0.480, _NOISE.good, _NOISE.bad),
        BugKind(0.005, _beta(1.0, 20.0), _beta(12.0, 12.0)),
    ),
    _SAME,
    no_change=0.0,
)


_LOG = tuple(math.log(rate) if rate else -math.inf for rate in RATES)
_LOG_NOT = tuple(math.log1p(-rate) if rate < 1 else -math.inf for rate in RATES)


@lru_cache(maxsize=65536)
def _likelihood(bad: int, runs: int) -> tuple[float, tuple[float, ...]]:
    """The log of the largest likelihood of these runs over the grid, and the likelihood at each rate, divided by it."""
    good = runs - bad
    logs = [(bad * a if bad else 0.0) + (good * b if good else 0.0) for a, b in zip(_LOG, _LOG_NOT, strict=True)]
    top = max(logs)
    return top, tuple(math.exp(value - top) for value in logs)


@lru_cache(maxsize=8)
def _families(prior: Prior) -> tuple[tuple[Density, Density], ...]:
    """The densities of the good side, each with the weighted sum of those of the bad side that go with it."""
    families: dict[Density, list[float]] = {}
    for kind in prior.kinds:
        bad = families.setdefault(kind.good, [0.0] * len(RATES))
        families[kind.good] = [total + kind.weight * weight for total, weight in zip(bad, kind.bad, strict=True)]
    return tuple((good, tuple(bad)) for good, bad in families.items())


_Side = tuple[float, list[float], list[float]]  # the log of the scale, weights for each family, and weights * rates


@lru_cache(maxsize=65536)
def _good_side(prior: Prior, bad: int, runs: int) -> _Side:
    """The weight of all lower rates, for each family and rate of the bad side, after these runs of the good side."""
    scale, like = _likelihood(bad, runs)
    weights: list[float] = []
    moments: list[float] = []
    for good, _ in _families(prior):
        here = [*map(mul, good, like)]
        weights += [0.0, *accumulate(here[:-1])]
        moments += [0.0, *accumulate(map(mul, here[:-1], RATES))]
    return scale, weights, moments


@lru_cache(maxsize=65536)
def _bad_side(prior: Prior, bad: int, runs: int) -> _Side:
    """The weight of each family and rate of the bad side, after these runs of it."""
    scale, like = _likelihood(bad, runs)
    weights: list[float] = []
    moments: list[float] = []
    for _, of_bad in _families(prior):
        here = [*map(mul, of_bad, like)]
        weights += here
        moments += map(mul, here, RATES)
    return scale, weights, moments


@lru_cache(maxsize=65536)
def _evidence(prior: Prior, good: tuple[int, int], bad: tuple[int, int]) -> tuple[float, float, float]:
    """The log evidence of two sides with rates q < p, and the mean of each rate; each side is (bad, runs)."""
    scale_q, lower, lower_moments = _good_side(prior, *good)
    scale_p, here, moments = _bad_side(prior, *bad)
    total = sum(map(mul, lower, here))
    if total <= 0.0:
        return -math.inf, 0.0, 1.0
    mean_q, mean_p = sum(map(mul, lower_moments, here)), sum(map(mul, lower, moments))
    return math.log(total) + scale_q + scale_p, mean_q / total, mean_p / total


@lru_cache(maxsize=4096)
def _same(prior: Prior, bad: int, runs: int) -> tuple[float, float]:
    """The log evidence of one rate everywhere, and its mean."""
    scale, like = _likelihood(bad, runs)
    weights = [weight * value for weight, value in zip(prior.same, like, strict=True)]
    total = sum(weights)
    return math.log(total) + scale, sum(w * rate for w, rate in zip(weights, RATES, strict=True)) / total


@frozen
class Posterior:
    """What the runs show about the change.

    `cuts[c]` is the probability that the change is between c - 1 and c (0 for c = 0), `none` that there is no change.
    `good[c]` and `bad[c]` are the mean rates on both sides if it is there, `same` is the mean rate if there is no
    change.
    """

    cuts: tuple[float, ...]
    none: float
    good: tuple[float, ...]
    bad: tuple[float, ...]
    same: float

    @classmethod
    def of(cls, count: int, told: Mapping[int, Counts], prior: Prior = UNKNOWN) -> Posterior:
        """The posterior of `count` positions after these runs; before them, every boundary is equally likely.

        Boundaries with no run between them share their evidence, so it is computed only once for each position that was
        run, whatever the count.
        """
        runs = sum(c.runs for c in told.values())
        fails = sum(c.bad for c in told.values())
        below = (0, 0)
        logs = [-math.inf]
        good, bad = [0.0], [0.0]
        change = math.log((1 - prior.no_change) / (count - 1)) if count > 1 else -math.inf
        found = _evidence(prior, below, (fails, runs))
        for cut in range(1, count):
            here = told.get(cut - 1)
            if here is not None and here.runs:
                below = (below[0] + here.bad, below[1] + here.runs)
                found = _evidence(prior, below, (fails - below[0], runs - below[1]))
            elif cut == 1:
                found = _evidence(prior, below, (fails, runs))
            logs.append(change + found[0])
            good.append(found[1])
            bad.append(found[2])
        log_same, same = _same(prior, fails, runs)
        no_change = prior.no_change if count > 1 else 1.0
        log_none = log_same + (math.log(no_change) if no_change else -math.inf)
        top = max(*logs, log_none)
        weights = [math.exp(value - top) for value in logs]
        none = math.exp(log_none - top)
        total = sum(weights) + none
        return cls(tuple(w / total for w in weights), none / total, tuple(good), tuple(bad), same)
