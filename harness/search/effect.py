"""How much a number differs between the two sides of a change, with a confidence interval, without a noise model.

The difference is the estimator of Hodges and Lehmann ("Estimates of location based on rank tests", Ann. Math. Statist.
34(2), 1963): the median of all pairwise differences. Its interval comes from the exact distribution of the statistic of
Mann and Whitney (Ann. Math. Statist. 18(1), 1947), so it holds for any distribution of the noise. Too few runs yield no
interval.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist, median
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 2  # with fewer runs of a side, its noise is unknown
_PLAIN = 10.0  # a difference of this many spreads needs no test
_EXACT = 400  # with more pairs, the normal approximation is good enough


@frozen
class Effect:
    """A number on both sides of a change: the medians `good` and `bad`, the difference bad - good and its interval.

    `confidence` is the confidence level of the interval from `low` to `high`. It is 0 if there were too few runs for an
    interval; then these are the smallest and the largest observed difference. `spread` is the range of the number on
    the side where it varies more.
    """

    good: float
    bad: float
    difference: float
    low: float
    high: float
    spread: float
    confidence: float
    good_runs: int
    bad_runs: int

    @property
    def is_clear(self) -> bool:
        """Whether the sides differ: by the interval, or, with few runs, by many times the spread."""
        nearest = max(self.low, -self.high)
        if self.confidence:
            return nearest > 0
        enough = min(self.good_runs, self.bad_runs) >= FEWEST and self.good_runs + self.bad_runs > 2 * FEWEST
        return enough and nearest > _PLAIN * self.spread


def effect_of(good: Sequence[float], bad: Sequence[float], confidence: float) -> Effect | None:
    """The effect between two sides; None if a side has no number, or one that is not finite.

    With a confidence of 1 there is no interval, however many runs there are.
    """
    differences = sorted(b - g for b in bad for g in good)
    if not differences or not all(math.isfinite(value) for value in (*good, *bad, differences[0], differences[-1])):
        return None
    cut = _rank(len(good), len(bad), confidence)
    low, high = differences[max(cut, 1) - 1], differences[-max(cut, 1)]
    spread = max(max(side) - min(side) for side in (good, bad))
    sure = confidence if cut else 0.0
    return Effect(median(good), median(bad), median(differences), low, high, spread, sure, len(good), len(bad))


@lru_cache(maxsize=256)
def _rank(m: int, n: int, confidence: float) -> int:
    """Which of the sorted pairwise differences, counted from either end, bounds the interval; 0 if none does."""
    tail = (1 - confidence) / 2
    if tail <= 0:
        return 0
    if m * n > _EXACT:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        return max(0, math.floor(m * n / 2 - 0.5 - NormalDist().inv_cdf(1 - tail) * deviation) + 1)
    allowed, rank = tail * math.comb(m + n, m), 0
    for ways in _statistic(m, n):
        allowed -= ways
        if allowed < 0:
            break
        rank += 1
    return rank


def _statistic(m: int, n: int) -> list[int]:
    """The number of orders of m and n values with the statistic 0, 1, ..., m * n: Gaussian binomial coefficients."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):  # multiply by (1 - q^(n + i)), divide by (1 - q^i)
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    return ways
