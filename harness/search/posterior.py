"""Where a failure rate changes, as far as the runs tell: a posterior over boundaries, jointly with the rates.

The line runs from the good end (0) to the bad end. Each boundary c says that the positions before c fail at one
rate and those from c on at a higher one; one more hypothesis says that all fail at the same rate. The rates are not
asked for: they are integrated out over a grid. Their prior is a mixture of the kinds of bug there are (below), each
with Beta densities, or with "never" on the good side and "always" on the bad one.

The model is that of change-point detection with unknown rates (Fearnhead, "Exact and efficient Bayesian inference
for multiple changepoint problems", 2006, for one changepoint), under the order q < p of the two rates.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STEPS = 40
_RATES = (0.0, *((i + 0.5) / _STEPS for i in range(_STEPS)), 1.0)
_LOG = tuple(math.log(rate) if rate else -math.inf for rate in _RATES)
_LOG_NOT = tuple(math.log1p(-rate) if rate < 1 else -math.inf for rate in _RATES)

NO_CHANGE = 0.5  # chance that there is no change at all


@frozen
class Counts:
    """Runs that were judged, and the bad ones among them."""

    bad: int = 0
    runs: int = 0

    @property
    def rate(self) -> float:
        """Failures for each run, 0 without runs."""
        return self.bad / self.runs if self.runs else 0.0

    def __str__(self) -> str:
        return f"{self.bad} of {self.runs}"


def _mixed(*parts: tuple[float, float | tuple[float, float]]) -> tuple[float, ...]:
    """Weights on the grid: each part is its weight, and one end of the grid or the two numbers of a Beta density."""
    grid = [0.0] * len(_RATES)
    for weight, shape in parts:
        if isinstance(shape, tuple):
            a, b = shape
            density = [rate ** (a - 1) * (1 - rate) ** (b - 1) for rate in _RATES[1:-1]]
            for i, value in enumerate(density, start=1):
                grid[i] += weight * value / sum(density)
        else:
            grid[0 if shape == 0.0 else -1] += weight
    return tuple(grid)


def _kind(
    weight: float, good: tuple[float, ...], bad: tuple[float, ...]
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """One kind of bug: its weight, spread over the pairs of rates in order, and the priors of both rates."""
    ordered = sum(w * below for w, below in zip(bad, (0.0, *accumulate(good)), strict=False))
    return weight / ordered, good, bad


_NEVER = _mixed((1.0, 0.0))
_KINDS = (
    _kind(0.35, _NEVER, _mixed((1.0, 1.0))),  # deterministic
    _kind(0.20, _NEVER, _mixed((0.9, (10.0, 10.0)), (0.1, (1.0, 1.0)))),  # never on the good side, now and then since
    _kind(0.10, _mixed((1.0, (2.0, 40.0))), _mixed((1.0, (40.0, 2.0)))),  # deterministic, seen through noise
    _kind(0.35, _mixed((1.0, (1.0, 4.0))), _mixed((1.0, (1.5, 1.5)))),  # seldom before, more often since
)
# Without a change: flaky everywhere, else never or always.
_SAME = _mixed((0.1, 0.0), (0.8, (1.0, 1.0)), (0.1, 1.0))


@lru_cache(maxsize=65536)
def _likelihood(bad: int, runs: int) -> tuple[float, tuple[float, ...]]:
    """The likelihood of these runs at each rate of the grid, times exp(the first number)."""
    good = runs - bad
    logs = [(bad * a if bad else 0.0) + (good * b if good else 0.0) for a, b in zip(_LOG, _LOG_NOT, strict=True)]
    top = max(logs)
    return top, tuple(math.exp(value - top) for value in logs)


@lru_cache(maxsize=65536)
def _evidence(good: tuple[int, int], bad: tuple[int, int]) -> tuple[float, float, float]:
    """Log evidence of two sides with rates q < p, and the mean of each rate; each side is (bad, runs)."""
    scale_q, like_q = _likelihood(*good)
    scale_p, like_p = _likelihood(*bad)
    total = mean_q = mean_p = 0.0
    for weight, prior_good, prior_bad in _KINDS:
        below = below_mean = 0.0
        for rate, prior_q, q, prior_p, p in zip(_RATES, prior_good, like_q, prior_bad, like_p, strict=True):
            here = weight * prior_p * p
            total += here * below
            mean_p += here * below * rate
            mean_q += here * below_mean
            below += prior_q * q
            below_mean += prior_q * q * rate
    if total <= 0.0:
        return -math.inf, 0.0, 1.0
    return math.log(total) + scale_q + scale_p, mean_q / total, mean_p / total


@lru_cache(maxsize=4096)
def _same(bad: int, runs: int) -> tuple[float, float]:
    """Log evidence of one rate everywhere, and its mean."""
    scale, like = _likelihood(bad, runs)
    weights = [prior * value for prior, value in zip(_SAME, like, strict=True)]
    total = sum(weights)
    return math.log(total) + scale, sum(w * rate for w, rate in zip(weights, _RATES, strict=True)) / total


@frozen
class Posterior:
    """What the runs tell of `count` positions.

    `cuts[c]` is the chance that the change lies between c - 1 and c (0 for c = 0), `none` that there is none;
    `good[c]` and `bad[c]` are the mean rates on both sides if it lies there, `same` the mean rate if there is none.
    """

    cuts: tuple[float, ...]
    none: float
    good: tuple[float, ...]
    bad: tuple[float, ...]
    same: float

    @classmethod
    def of(cls, count: int, told: Mapping[int, Counts], no_change: float = NO_CHANGE) -> Posterior:
        """The posterior after these runs; every boundary is as likely as another before them.

        Positions without a run between them share all that is known, so this takes as many steps as positions were
        run, whatever the count. `no_change` is the chance, before any run, that there is no change.
        """
        runs = sum(c.runs for c in told.values())
        fails = sum(c.bad for c in told.values())
        below = (0, 0)
        logs = [-math.inf]
        good, bad = [0.0], [0.0]
        prior = math.log((1 - no_change) / (count - 1)) if count > 1 and no_change < 1 else -math.inf
        found = _evidence(below, (fails, runs))
        for cut in range(1, count):
            here = told.get(cut - 1)
            if here is not None and here.runs:
                below = (below[0] + here.bad, below[1] + here.runs)
                found = _evidence(below, (fails - below[0], runs - below[1]))
            elif cut == 1:
                found = _evidence(below, (fails, runs))
            logs.append(prior + found[0])
            good.append(found[1])
            bad.append(found[2])
        log_same, same = _same(fails, runs)
        log_none = log_same + (math.log(no_change) if no_change > 0 else -math.inf)
        top = max(*logs, log_none)
        weights = [math.exp(value - top) for value in logs]
        none = math.exp(log_none - top)
        total = sum(weights) + none
        return cls(tuple(w / total for w in weights), none / total, tuple(good), tuple(bad), same)

    def informs(self) -> tuple[float, ...]:
        """How much a run at each position is expected to tell of the boundary, in bits.

        The mutual information of the verdict and the hypothesis: the entropy of the verdict less what is left of it
        where the hypothesis is known (Lindley 1956).
        """
        return informs(self.cuts, self.none, self)


def informs(cuts: Sequence[float], none: float, rates: Posterior) -> tuple[float, ...]:
    """Bits that a run at each position tells, with these chances and the rates of a posterior."""
    count = len(cuts)
    # Position x lies on the bad side of cuts 1..x and on the good side of the others.
    bad_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.bad, strict=True))]
    bad_left = [0.0, *accumulate(w * _entropy(r) for w, r in zip(cuts, rates.bad, strict=True))]
    good_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.good, strict=True))]
    good_left = [0.0, *accumulate(w * _entropy(r) for w, r in zip(cuts, rates.good, strict=True))]
    same, same_left = none * rates.same, none * _entropy(rates.same)
    told = []
    for x in range(count):
        rate = bad_rate[x + 1] + good_rate[-1] - good_rate[x + 1] + same
        left = bad_left[x + 1] + good_left[-1] - good_left[x + 1] + same_left
        told.append(max(0.0, _entropy(rate) - left))
    return tuple(told)


def _entropy(rate: float) -> float:
    """Of one verdict, in bits."""
    if rate <= 0.0 or rate >= 1.0:
        return 0.0
    return -rate * math.log2(rate) - (1 - rate) * math.log2(1 - rate)
