"""A search whose candidates are judged by a number: each is run until its side of the bound is clear.

It wraps any search over positions, such as a grid or a scan for windows, and reports one verdict per position to it. A
position whose first run has no number gets the verdict of that run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.verdict import Verdict
from harness.search.bisection_result import Trial
from harness.search.protocol import record
from harness.search.readings import readings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.search.protocol import Search
    from harness.search.readings import Reading, Readings

_LOST = 4  # with more lost runs than this, the position itself is skipped


class ByNumber:
    """Search over the positions of another search; its candidates are `Trial`s.

    `reading` returns the number of a recorded run, None if the run was judged by something else.
    """

    def __init__(self, search: Search[int], reading: Callable[[Trial], Reading | None]) -> None:
        self._search = search
        self._reading = reading
        self._told: dict[Trial, Verdict] = {}
        self._asked: tuple[Trial, ...] = ()
        self._settled: dict[int, Verdict] = {}

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests that still matter come first."""
        positions = self._search.ask(n)
        missing = [trial for position in positions for trial in self._missing(position)]
        still = [trial for trial in self._asked if trial in missing]
        wanted = tuple(dict.fromkeys((*still, *missing)))[: max(n, 0)]
        self._asked = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n first runs that may be requested next. Repetitions need no preparation and are left out."""
        fresh = (Trial(position) for position in self._search.foresee(n))
        return tuple(trial for trial in fresh if trial not in self._told and trial not in self._asked)

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict of one run. Raises ValueError for an unknown position or a second, different verdict."""
        record(self._told, candidate, verdict)
        position = candidate.position
        if position not in self._settled and (settled := self._side(position)) is not None:
            self._search.tell(position, settled)
            self._settled[position] = settled

    @property
    def done(self) -> bool:
        """Whether the wrapped search is done."""
        return self._search.done

    def remaining(self) -> int:
        """Upper estimate of the runs left, if the number of each position is the same in every run."""
        return self._search.remaining() * (2 if any(map(self._reading, self._told)) else 1)

    def is_settled(self, position: int) -> bool:
        """Whether a position has its final verdict."""
        return position in self._settled

    def _side(self, position: int) -> Verdict | None:
        """The verdict of a position, None while runs are missing."""
        first = self._told.get(Trial(position))
        if first is None:
            return None
        if first is Verdict.SKIP or self._reading(Trial(position)) is None:
            return first
        if self._missing(position):
            return None
        return (self._readings(position).verdict or Verdict.SKIP) if self._is_measured(position) else Verdict.SKIP

    def _missing(self, position: int) -> tuple[Trial, ...]:
        """The runs of a position that are needed and have no verdict yet."""
        told = [trial for trial in self._told if trial.position == position]
        if not told:
            return (Trial(position),)
        lost = sum(self._told[trial] is Verdict.SKIP or self._reading(trial) is None for trial in told)
        if position in self._settled or lost == len(told) or lost > _LOST:
            return ()
        wanted = self._readings(position).wanted + lost
        return tuple(trial for attempt in range(wanted) if (trial := Trial(position, attempt)) not in self._told)

    def _is_measured(self, position: int) -> bool:
        return not self._readings(position).is_open

    def _readings(self, position: int) -> Readings:
        trials = sorted(trial for trial in self._told if trial.position == position)
        return readings_of([r for trial in trials if (r := self._reading(trial)) is not None])
