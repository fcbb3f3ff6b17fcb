"""On which side of its bound a number lies, from repeated runs of one candidate, without a model of its noise.

A number that is the same in each run needs two of them. One that varies is run 8 times, and 12 times if these don't
agree: the side is that of its median, by the sign test (Dixon and Mood, "The statistical sign test", J. Amer. Statist.
Assoc. 41(236), 1946), whose interval for the median holds whatever the noise looks like.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOKS = (2, 8, 12)  # to look after each run would find noise clear at last
_PLAIN = 20.0  # two runs that are so many times nearer to each other than to the bound
_CONFIDENCE = 0.99


@frozen
class Reading:
    """The number of one run: its `value`, how far that is past the bound (`excess`, above 0 is bad), the verdict."""

    value: float
    excess: float
    verdict: Verdict


@frozen
class Readings:
    """The number of a candidate in all its runs: the median, and its interval from `low` to `high`.

    `confidence` is that of the interval, 0 where there is none: then these are the least and the greatest value.
    `verdict` is the side of the bound, None if the runs don't tell; `wanted` is the number of runs that could.
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
        """Whether more runs could tell on which side it is."""
        return self.wanted > self.runs


def readings_of(readings: Sequence[Reading]) -> Readings:
    """What these runs say together, in their order. Raises ValueError without any."""
    if not readings:
        raise ValueError("there is no run")
    for look in _LOOKS:
        seen = readings[:look]
        verdict = _side(seen) if len(seen) == look else None
        if verdict is not None or len(seen) < look:
            return _summed(readings, verdict, len(readings) if verdict is not None else look)
    return _summed(readings, None, len(readings))


def _side(readings: Sequence[Reading]) -> Verdict | None:
    """The side of the bound, None if these runs don't tell."""
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
    """How far they vary: 0 where all are the same, also if that is infinite."""
    return 0.0 if len(set(values)) == 1 else max(values) - min(values)


def _rank(runs: int) -> int:
    """Which of the sorted values, counted from either end, bounds the interval of the median; 0 if none does."""
    allowed, rank = (1 - _CONFIDENCE) / 2 * 2**runs, 0
    while (allowed := allowed - math.comb(runs, rank)) >= 0:
        rank += 1
    return rank
