"""A bug that is recognised by a number: whether the number really differs, or on which side of its bound it is.

Each run is good or bad by the bound. That alone could name a release where only noise crosses the bound, so both sides
are rerun until their numbers differ clearly. If the number varies, only runs made after the change was named count:
earlier ones were used to select that change.

There are two tests, for any distribution of the noise. With two sides, the difference is the estimator of Hodges and
Lehmann ("Estimates of location based on rank tests", Ann. Math. Statist. 34(2), 1963), the median of all pairwise
differences, and the statistic of Mann and Whitney (Ann. Math. Statist. 18(1), 1947) bounds it. With one side and a
bound, the sign test (Dixon and Mood, J. Amer. Statist. Assoc. 41(236), 1946) bounds the median. Both intervals go from
one of the sorted values to another, equally far from the ends, by the exact distribution of the statistic. Too few runs
yield no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, count, islice, takewhile
from operator import attrgetter
from statistics import NormalDist, median

from attrs import frozen

from harness.model.boundary import Effect
from harness.model.verdict import Verdict
from harness.search.posterior import CONFIDENCE
from harness.search.protocol import Search, Trial, record

_ENOUGH = 5  # repetitions of each side: the fewest that yield a 0.99 interval
_MOST = 12  # repetitions of each side, after which the number is reported as too variable
_LIKELY = 0.8  # two ends that differ at this confidence level are measured twice as often before they count as equal
_LOST = 4  # runs of a side that may be skipped
_NO_INTERVAL = 1.0


@frozen
class Gauges:
    """What is known about runs besides their verdicts.

    `seconds` returns the duration of a run at a position; only the ratios matter. `number` returns the number by which
    a run was judged, None if it was judged by something else.
    """

    seconds: Callable[[int], float] = lambda _: 1.0
    number: Callable[[Trial], float | None] = lambda _: None


class Measurements:
    """The numbers of runs, and which of the runs were made before a change was named."""

    def __init__(self, number: Callable[[Trial], float | None]) -> None:
        self._number = number
        self._verdicts: dict[Trial, Verdict] = {}
        self._boundary: tuple[int, int] | None = None
        self._before: frozenset[Trial] = frozenset()

    def tell(self, trial: Trial, verdict: Verdict) -> None:
        """Record a run."""
        self._verdicts[trial] = verdict

    def name(self, boundary: tuple[int, int] | None) -> None:
        """Set the boundary that the runs so far name, None if none. If it changed, all of them count as made before."""
        if boundary != self._boundary:
            self._boundary, self._before = boundary, frozenset(self._verdicts)

    def effect(self, good: int, bad: int) -> Effect | None:
        """How much the number differs between two positions; None if a number is missing or not finite."""
        every = self._effect(good, bad, self._verdicts, _NO_INTERVAL)
        if every is None or every.is_clear:
            return every
        fresh = self._effect(good, bad, self._fresh, CONFIDENCE)
        return fresh if fresh is not None and fresh.confidence else every

    def between(self, good: range, bad: range) -> Effect | None:
        """How much the number differs between all runs at some positions and at others; None as in `effect`."""
        return effect_of(self._numbers(good, self._verdicts), self._numbers(bad, self._verdicts), CONFIDENCE)

    def missing(self, good: int, bad: int, most: int = _MOST) -> tuple[int, int]:
        """How many more runs the two positions need; (0, 0) if the numbers differ clearly or never will.

        A number that varies is run up to `most` times on each side.
        """
        every, effect = self._effect(good, bad, self._verdicts, _NO_INTERVAL), self.effect(good, bad)
        if every is None or effect is None or effect.is_clear:
            return 0, 0
        runs_of_both = every.good_runs + every.bad_runs
        if every.difference == every.spread == 0 and runs_of_both > FEWEST:
            return 0, 0
        few = max(0, FEWEST - every.good_runs), max(0, FEWEST - every.bad_runs)
        if any(few):
            return few
        if runs_of_both <= 2 * FEWEST:
            return 1, 0
        fresh = self._fresh
        runs = [len(self._numbers(range(at, at + 1), fresh)) for at in (good, bad)]
        wanted = _ENOUGH if min(runs) < _ENOUGH else most  # a test after every run would mistake noise for a result
        lost = [sum(trial.position == at for trial in fresh) >= most + _LOST for at in (good, bad)]
        missing = [0 if over else max(0, wanted - ran) for ran, over in zip(runs, lost, strict=True)]
        return missing[0], missing[1]

    @property
    def _fresh(self) -> Collection[Trial]:
        return [trial for trial in self._verdicts if trial not in self._before]

    def _effect(self, good: int, bad: int, trials: Collection[Trial], confidence: float) -> Effect | None:
        of_good, of_bad = (self._numbers(range(at, at + 1), trials) for at in (good, bad))
        return effect_of(of_good, of_bad, confidence)

    def _numbers(self, positions: range, trials: Collection[Trial]) -> list[float]:
        """The numbers of the judged trials at some positions."""
        judged = (t for t in trials if t.position in positions and self._verdicts[t] is not Verdict.SKIP)
        return [number for number in map(self._number, judged) if number is not None]


class TwoEnds:
    """Runs two positions, whose order is not known, until their numbers differ clearly or never will.

    Its candidates are `Trial`s of the positions `good` and `bad`. It ends at once if the first run of one has no
    number. `number` returns that of a run that was recorded; `most` is the number of runs of each that it may take.
    """

    def __init__(self, good: int, bad: int, number: Callable[[Trial], float | None], most: int = _MOST) -> None:
        self._ends = good, bad
        self._number = number
        self._most = most
        self._is_last = most < _MOST
        self._measured = Measurements(number)
        self._told: dict[Trial, Verdict] = {}
        self._batch = self._next_batch()

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n runs to make now."""
        return self._batch[:n]

    def foresee(self, n: int) -> tuple[Trial, ...]:  # noqa: ARG002 - repetitions need no preparation
        """Nothing."""
        return ()

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a run. Raises ValueError for a second, different verdict."""
        record(self._told, candidate, verdict)
        self._measured.tell(candidate, verdict)
        # The numbers are compared after a whole batch: a test after every run would mistake noise for a result.
        batch = tuple(trial for trial in self._batch if trial != candidate)
        self._batch = () if self._is_lost else batch or self._next_batch()

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        return not self._batch

    def remaining(self) -> int:
        """Estimate of the runs left, if the number does not vary."""
        return len(self._batch)

    @property
    def effect(self) -> Effect | None:
        """The difference; None if one has no number, or one that is not finite."""
        return self._measured.effect(*self._ends)

    def numbers(self, position: int) -> tuple[float, ...]:
        """The numbers of the runs of a position, in their order."""
        runs = sorted(trial for trial, verdict in self._told.items() if verdict is not Verdict.SKIP)
        numbers = (self._number(trial) for trial in runs if trial.position == position)
        return tuple(number for number in numbers if number is not None)

    @property
    def _is_lost(self) -> bool:
        """Whether a position has run and has no number."""
        return any(Trial(at) in self._told and not self.numbers(at) for at in self._ends)

    def _next_batch(self) -> tuple[Trial, ...]:
        sides = {at: self.numbers(at) for at in self._ends}
        if untried := [Trial(at) for at in reversed(self._ends) if Trial(at) not in self._told]:
            return tuple(untried)
        odd = [[not math.isfinite(number) for number in side] for side in sides.values()]
        if any(map(any, odd)):
            wanted = FEWEST if all(len(set(side)) == 1 for side in odd) else _ENOUGH
            missing = [max(0, wanted - len(side)) for side in sides.values()]
        else:
            missing = [*self._measured.missing(*self._ends, self._most)]
            if not any(missing) and not self._is_last and self._is_likely():
                self._is_last, self._most = True, 2 * _MOST
                missing = [*self._measured.missing(*self._ends, self._most)]
        return tuple(
            trial for at, runs in zip(self._ends, missing, strict=True) for trial in islice(self._untold(at), runs)
        )

    def _is_likely(self) -> bool:
        """Whether the numbers would differ clearly if less confidence were enough."""
        good, bad = map(self.numbers, self._ends)
        effect = effect_of(good, bad, _LIKELY)
        return effect is not None and effect.confidence > 0 and effect.is_clear

    def _untold(self, position: int) -> Iterable[Trial]:
        return (trial for attempt in count() if (trial := Trial(position, attempt)) not in self._told)


def bound_between(effect: Effect) -> float:
    """The bound in the middle between two sides, with as few digits as leave it in the middle half."""
    middle, most = (effect.good + effect.bad) / 2, abs(effect.bad - effect.good) / 4
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((value for value in rounded if abs(value - middle) <= most), middle)


FEWEST = 2  # with fewer runs of a side, its noise is unknown
_PLAIN = 10.0  # a difference of this many spreads needs no test
_EXACT = 400  # with more pairs, the normal approximation is good enough


def effect_of(good: Sequence[float], bad: Sequence[float], confidence: float) -> Effect | None:
    """The effect between two sides; None if a side has no number, or one that is not finite.

    With a confidence of 1 there is no interval, however many runs there are.
    """
    differences = sorted(b - g for b in bad for g in good)
    if not differences or not all(math.isfinite(value) for value in (*good, *bad, differences[0], differences[-1])):
        return None
    low, high, sure = _interval(differences, _rank_of_two(len(good), len(bad), confidence), confidence)
    spread = max(max(side) - min(side) for side in (good, bad))
    nearest = max(low, -high)
    is_enough = min(len(good), len(bad)) >= FEWEST and len(good) + len(bad) > 2 * FEWEST
    is_clear = nearest > 0 if sure else is_enough and nearest > _PLAIN * spread
    medians = median(good), median(bad), median(differences)
    return Effect(*medians, low, high, spread, sure, len(good), len(bad), is_clear)


def _interval(values: Sequence[float], rank: int, confidence: float) -> tuple[float, float, float]:
    """The bounds of an interval, the values of this rank from either end, and its confidence level.

    With rank 0 there is none: the bounds are the smallest and the largest value, and the level is 0.
    """
    at = max(rank, 1)
    return values[at - 1], values[-at], confidence if rank else 0.0


def _rank(orders: Iterable[int], total: int, confidence: float) -> int:
    """The rank of the values that bound the interval, 0 if none do.

    `orders` has in how many of `total` equally likely cases the statistic is 0, 1, ...
    """
    allowed = (1 - confidence) / 2 * total
    return sum(1 for _ in takewhile(lambda cases: cases <= allowed, accumulate(orders)))


@lru_cache(maxsize=256)
def _rank_of_two(m: int, n: int, confidence: float) -> int:
    """The rank for the sorted pairwise differences of m and n values."""
    if m * n > _EXACT and confidence < 1:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        distance = NormalDist().inv_cdf((1 + confidence) / 2) * deviation
        return max(0, math.floor(m * n / 2 - 0.5 - distance) + 1)
    return _rank((_orders(value, m, n) for value in count()), math.comb(m + n, m), confidence)


def _rank_of_one(runs: int) -> int:
    """The rank for the sorted values of one side: how many may be on the other side of its median."""
    return _rank((math.comb(runs, value) for value in range(runs + 1)), 2**runs, CONFIDENCE)


@lru_cache(maxsize=1 << 16)
def _orders(statistic: int, m: int, n: int) -> int:
    """In how many orders of m and n values the statistic has this value (the recursion of Mann and Whitney)."""
    if statistic <= 0 or not m or not n:
        return int(statistic == 0)
    return _orders(statistic - n, m - 1, n) + _orders(statistic, m, n - 1)


_LOOKS = (2, 8, 12)  # runs after which the side is tested; a test after every run would mistake noise for a result
PATIENT = (*_LOOKS, 24, 40)  # where noise is known to cross the bound; 40 decide if one run in six is on the wrong side
_NEAR = 20.0  # two runs are enough if they are this many times nearer to each other than to the bound


class ByNumber:
    """Search over the positions of another search, each run until its side of the bound is clear (see `Readings`).

    Its candidates are `Trial`s, and the wrapped search gets one verdict for each position. A position whose first
    run has no number gets the verdict of that run.
    `reading` returns the number of a recorded run, None if the run was judged by something else.
    """

    def __init__(self, search: Search[int], reading: Callable[[Trial], Reading | None]) -> None:
        self._search = search
        self._reading = reading
        self._verdicts: dict[Trial, Verdict] = {}
        self._settled: dict[int, Verdict] = {}
        self._requested: tuple[Trial, ...] = ()

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n runs to make now; earlier requests that still matter come first."""
        missing = [trial for position in self._search.ask(n) for trial in self._missing(position)]
        still = [trial for trial in self._requested if trial in missing]
        wanted = tuple(dict.fromkeys((*still, *missing)))[: max(n, 0)]
        self._requested = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n first runs that may be requested next. Repetitions need no preparation and are left out."""
        fresh = (Trial(position) for position in self._search.foresee(n))
        return tuple(trial for trial in fresh if trial not in self._verdicts and trial not in self._requested)

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict of one run. Raises ValueError for an unknown position or a second, different verdict."""
        record(self._verdicts, candidate, verdict)
        position = candidate.position
        if position not in self._settled and (settled := self._side(position)) is not None:
            self._search.tell(position, settled)
            self._settled[position] = settled

    def is_settled(self, position: int) -> bool:
        """Whether a position has its final verdict."""
        return position in self._settled

    @property
    def done(self) -> bool:
        """Whether the wrapped search is done."""
        return self._search.done

    def remaining(self) -> int:
        """Upper estimate of the runs left, if the number of each position is the same in every run."""
        return self._search.remaining() * (2 if any(map(self._reading, self._verdicts)) else 1)

    def _side(self, position: int) -> Verdict | None:
        """The verdict of a position, None while runs are missing."""
        first = self._verdicts.get(Trial(position))
        if first is None:
            return None
        if first is Verdict.SKIP or self._reading(Trial(position)) is None:
            return first
        if self._missing(position):
            return None
        readings = self._readings(position)
        return Verdict.SKIP if readings.is_open else readings.verdict or Verdict.SKIP

    def _missing(self, position: int) -> tuple[Trial, ...]:
        """The runs of a position that are needed and have no verdict yet."""
        trials = [trial for trial in self._verdicts if trial.position == position]
        if not trials:
            return (Trial(position),)
        lost = sum(self._verdicts[trial] is Verdict.SKIP or self._reading(trial) is None for trial in trials)
        if position in self._settled or lost == len(trials) or lost > _LOST:
            return ()
        wanted = self._readings(position).wanted + lost
        return tuple(trial for attempt in range(wanted) if (trial := Trial(position, attempt)) not in self._verdicts)

    def _readings(self, position: int) -> Readings:
        trials = sorted((trial for trial in self._verdicts if trial.position == position), key=attrgetter("attempt"))
        return readings_of([r for trial in trials if (r := self._reading(trial)) is not None])


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


def readings_of(readings: Sequence[Reading], looks: Sequence[int] = _LOOKS) -> Readings:
    """Combine the readings of a candidate, in the order of its runs. Raises ValueError if there are none.

    A number that is the same in each run needs two runs. One that varies is run 8 times, or 12 if those do not agree,
    or as often as `looks` say; then its side is that of the median.
    """
    if not readings:
        raise ValueError("there is no run")
    for look in looks:
        first = readings[:look]
        verdict = _side(first) if len(first) == look else None
        if verdict is not None or len(first) < look:
            return _summed(readings, verdict, len(readings) if verdict is not None else look)
    return _summed(readings, None, len(readings))


def _side(readings: Sequence[Reading]) -> Verdict | None:
    """The side of the bound, None if these runs do not show it."""
    bad = sum(reading.verdict is Verdict.BAD for reading in readings)
    side = Verdict.BAD if 2 * bad > len(readings) else Verdict.GOOD
    if len(readings) < _LOOKS[1]:
        nearest = min(abs(reading.excess) for reading in readings)
        spread = _spread([reading.excess for reading in readings])
        is_plain = spread == 0 or nearest > _NEAR * spread
        return side if bad in (0, len(readings)) and is_plain else None
    return side if min(bad, len(readings) - bad) < _rank_of_one(len(readings)) else None


def _summed(readings: Sequence[Reading], verdict: Verdict | None, wanted: int) -> Readings:
    values = sorted(reading.value for reading in readings)
    rank = _rank_of_one(len(values)) if all(map(math.isfinite, values)) else 0
    low, high, sure = _interval(values, rank, CONFIDENCE)
    bad = sum(reading.verdict is Verdict.BAD for reading in readings)
    return Readings(median(values), low, high, sure, len(values), bad, verdict, wanted)


def _spread(values: Sequence[float]) -> float:
    """The range of the values; 0 if all are equal, even if they are infinite."""
    return 0.0 if len(set(values)) == 1 else max(values) - min(values)
