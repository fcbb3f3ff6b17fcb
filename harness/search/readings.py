"""On which side of its bound a number is, from repeated runs of one candidate, without a noise model.

A number that is the same in each run needs two runs. One that varies is run 8 times, or 12 if those do not agree. Its
side is that of the median by the sign test (Dixon and Mood, "The statistical sign test", J. Amer. Statist. Assoc.
41(236), 1946), whose interval for the median holds for any distribution of the noise.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOKS = (2, 8, 12)  # runs after which the side is tested; a test after every run would mistake noise for a result
_PLAIN = 20.0  # two runs are enough if they are this many times nearer to each other than to the bound
_CONFIDENCE = 0.99


@frozen
class Reading:
    """The number of one run (`value`), how far it is past the bound (`excess`, above 0 is bad), and the verdict."""

    value: float
    excess: float
    verdict: Verdict


@frozen
class Readings:
    """The number of a candidate over all its runs: the median, and its interval from `low` to `high`.

    `confidence` is the confidence level of the interval, 0 if there is none; then these are the smallest and the
    largest value. `verdict` is the side of the bound, None if the runs do not show it; `wanted` is the number of runs
    that could.
    """

    median: float
    low: float
    high: float
    confidence: float
    runs: int
    bad: int
    verdict: Verdict | None
    wanted: int

    @property
    def is_open(self) -> bool:
        """Whether more runs could show the side of the bound."""
        return self.wanted > self.runs


def readings_of(readings: Sequence[Reading]) -> Readings:
    """Combine the readings of a candidate, in the order of its runs. Raises ValueError if there are none."""
    if not readings:
        raise ValueError("there is no run")
    for look in _LOOKS:
        seen = readings[:look]
        verdict = _side(seen) if len(seen) == look else None
        if verdict is not None or len(seen) < look:
            return _summed(readings, verdict, len(readings) if verdict is not None else look)
    return _summed(readings, None, len(readings))


def _side(readings: Sequence[Reading]) -> Verdict | None:
    """The side of the bound, None if these runs do not show it."""
    bad = sum(reading.verdict is Verdict.BAD for reading in readings)
    side = Verdict.BAD if 2 * bad > len(readings) else Verdict.GOOD
    if len(readings) < _LOOKS[1]:
        nearest = min(abs(reading.excess) for reading in readings)
        spread = _spread([reading.excess for reading in readings])
        is_plain = spread == 0 or nearest > _PLAIN * spread
        return side if bad in (0, len(readings)) and is_plain else None
    return side if min(bad, len(readings) - bad) < _rank(len(readings)) else None


def _summed(readings: Sequence[Reading], verdict: Verdict | None, wanted: int) -> Readings:
    values = sorted(reading.value for reading in readings)
    rank = _rank(len(values)) if all(map(math.isfinite, values)) else 0
    low, high = values[max(rank, 1) - 1], values[-max(rank, 1)]
    bad = sum(reading.verdict is Verdict.BAD for reading in readings)
    sure = _CONFIDENCE if rank else 0.0
    return Readings(median(values), low, high, sure, len(values), bad, verdict, wanted)


def _spread(values: Sequence[float]) -> float:
    """The range of the values; 0 if all are equal, even if they are infinite."""
    return 0.0 if len(set(values)) == 1 else max(values) - min(values)


def _rank(runs: int) -> int:
    """Which of the sorted values, counted from either end, bounds the interval of the median; 0 if none does."""
    allowed, rank = (1 - _CONFIDENCE) / 2 * 2**runs, 0
    while (allowed := allowed - math.comb(runs, rank)) >= 0:
        rank += 1
    return rank
