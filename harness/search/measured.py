"""A bug that is recognised by a number: whether the number really differs between the two sides of a change.

Each run is good or bad by the bound. That alone could name a release where only noise crosses the bound, so both sides
are rerun until their numbers differ clearly. If the number varies, only runs made after the change was named count:
earlier ones were used to select that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.effect import FEWEST, Effect, effect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from harness.search.bisection_result import Trial

_ENOUGH = 5  # repetitions of each side: the fewest that yield a 0.99 interval
_MOST = 12  # repetitions of each side, after which the number is reported as too variable
_LOST = 8  # additional runs of a side, in case some are skipped
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

    def __init__(self, number: Callable[[Trial], float | None], confidence: float) -> None:
        self._number = number
        self._confidence = confidence
        self._told: dict[Trial, Verdict] = {}
        self._boundary: tuple[int, int] | None = None
        self._before: frozenset[Trial] = frozenset()

    def tell(self, trial: Trial, verdict: Verdict) -> None:
        """Record a run."""
        self._told[trial] = verdict

    def name(self, boundary: tuple[int, int] | None) -> None:
        """Set the boundary that the runs so far name, None if none. If it changed, all of them count as made before."""
        if boundary != self._boundary:
            self._boundary, self._before = boundary, frozenset(self._told)

    def effect(self, good: int, bad: int) -> Effect | None:
        """How much the number differs between two positions; None if a number is missing or not finite."""
        every = self._effect(good, bad, self._told, _NO_INTERVAL)
        if every is None or every.is_clear:
            return every
        fresh = self._effect(good, bad, self._fresh, self._confidence)
        return fresh if fresh is not None and fresh.confidence else every

    def between(self, good: range, bad: range) -> Effect | None:
        """How much the number differs between all runs at some positions and at others; None as in `effect`."""
        return effect_of(self._numbers(good, self._told), self._numbers(bad, self._told), self._confidence)

    def missing(self, good: int, bad: int) -> tuple[int, int]:
        """How many more runs the two positions need; (0, 0) if the numbers differ clearly or never will."""
        every, effect = self._effect(good, bad, self._told, _NO_INTERVAL), self.effect(good, bad)
        if every is None or effect is None or effect.is_clear:
            return 0, 0
        few = max(0, FEWEST - every.good_runs), max(0, FEWEST - every.bad_runs)
        if any(few):
            return few
        if every.good_runs + every.bad_runs <= 2 * FEWEST:
            return 1, 0
        fresh = self._fresh
        runs = [len(self._numbers(range(at, at + 1), fresh)) for at in (good, bad)]
        wanted = _ENOUGH if min(runs) < _ENOUGH else _MOST  # a test after every run would mistake noise for a result
        lost = [sum(trial.position == at for trial in fresh) >= _MOST + _LOST for at in (good, bad)]
        more = [0 if over else max(0, wanted - there) for there, over in zip(runs, lost, strict=True)]
        return more[0], more[1]

    @property
    def _fresh(self) -> Collection[Trial]:
        return [trial for trial in self._told if trial not in self._before]

    def _effect(self, good: int, bad: int, trials: Collection[Trial], confidence: float) -> Effect | None:
        of_good, of_bad = (self._numbers(range(at, at + 1), trials) for at in (good, bad))
        return effect_of(of_good, of_bad, confidence)

    def _numbers(self, positions: range, trials: Collection[Trial]) -> list[float]:
        """The numbers of the judged trials at some positions."""
        judged = (t for t in trials if t.position in positions and self._told[t] is not Verdict.SKIP)
        return [number for number in map(self._number, judged) if number is not None]
