"""A scan for windows, the stretches of positions in which a repro was broken: a grid, and a search over a line for each
change that it shows.

The grid leaves no gap between neighbouring runs that is wider than the stride; a window that is narrower can hide
there. Where two neighbours differ, a `LineSearch` finds the change between them and makes it sure. It knows all runs
from the change before to the one after, and repeats runs as if only this change were asked for.

A position is bad if any of its runs is; by numbers, it is on the side of their median. Once two runs of a position
disagree, the failure rate of the bad ones is known, and each good one is run as often as that rate asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, islice, pairwise
from operator import attrgetter

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.line import LineSearch
from harness.search.numbers import Reading, Readings, readings_of
from harness.search.posterior import CONFIDENCE, Noise, passes_needed
from harness.search.protocol import PositionState, Trial, record, state_of
from harness.search.survey import cut_gap, gaps_of

_DOUBT = 0.01  # that a release is called good by luck, for all of them together
_MOST = 24  # passes of one release
_LOST = 4  # repetitions of a position that may be skipped


class CoarseGrid:
    """Search over the first runs of positions 0 (oldest) to count - 1 (newest).

    At most `max_gap` - 1 consecutive positions are not run, half as many next to a skip, which shows nothing; 1 runs
    every position. Raises ValueError if `count` or `max_gap` is below 1.
    """

    def __init__(self, count: int, max_gap: int) -> None:
        if count < 1 or max_gap < 1:
            raise ValueError("a scan needs at least one position and a max_gap of at least 1")
        self._count = count
        self._stride = max_gap
        self._verdicts: dict[int, Verdict] = {}
        self._requested: tuple[int, ...] = ()

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n first runs to make now: those requested before, the two ends, then points that narrow the gaps."""
        waiting = [position for position in self._requested if position not in self._verdicts]
        while len(waiting) < n and (points := self._points(waiting)):
            waiting += points[: n - len(waiting)]
        self._requested = tuple(waiting)
        return tuple(map(Trial, waiting[: max(n, 0)]))

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n first runs that may be requested next."""
        return tuple(map(Trial, self._points(self._requested)[: max(n, 0)]))

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict on a position. Raises ValueError for an unknown one, or a second, different verdict."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        record(self._verdicts, candidate.position, verdict)

    @property
    def done(self) -> bool:
        """Whether no gap is wider than it may be."""
        return not self._points()

    def remaining(self) -> int:
        """Upper estimate of the runs left, with those between its points if the verdict changed at each of them."""
        per_gap = (self._stride - 1).bit_length()
        points = self._points()
        points += self._points(points)  # those between the ends
        return min(self._count - len(self._verdicts), len(points) + (len(points) + 1) * per_gap) if points else 0

    def _points(self, running: Iterable[int] = ()) -> list[int]:
        """The positions to run. A running one counts as tried, whatever its verdict will be."""
        tried = {*self._verdicts, *running}
        ends = [position for position in (self._count - 1, 0) if position not in tried]
        gaps = gaps_of(position for position in range(self._count) if position not in tried)
        return list(dict.fromkeys(ends)) or [point for gap in gaps for point in self._cuts(gap)]

    def _cuts(self, gap: range) -> list[int]:
        """The points that keep a gap narrow enough.

        Only a gap that is already narrow enough is halved, so that a skip at one end of a long gap does not halve all
        of it.
        """
        widest = self._stride - 1
        if len(gap) <= widest and Verdict.SKIP in (self._verdicts.get(gap.start - 1), self._verdicts.get(gap.stop)):
            widest //= 2
        return cut_gap(gap, -(-(len(gap) + 1) // (widest + 1)) - 1)


def stride_for(count: int) -> int:
    """The narrowest stride whose scan, with the bisections of four changes, runs under a third of `count`.

    It is a power of two, so that bisecting a gap between two runs costs the fewest runs for its width. If four changes
    do not fit into that third, two are assumed; if two do not fit either, the stride with the fewest runs is taken. If
    that would run most of the positions, all are run, so that no window of one position is missed to save a few runs.
    """
    costs = {1 << k: (-(-(count - 1) // (1 << k)) + 1, k) for k in range(max(count - 1, 1).bit_length())}
    for changes in (4, 2):
        fitting = [s for s, (scan, per_change) in costs.items() if 3 * (scan + changes * per_change) < count]
        if fitting:
            return min(fitting)
    cheapest = min(costs, key=lambda s: (costs[s][0] + 2 * costs[s][1], s))
    scan, per_change = costs[cheapest]
    return 1 if 2 * (scan + 2 * per_change) > count else cheapest


@frozen
class Part:
    """A stretch of positions with one change, between its judged neighbours `older` and `newer`."""

    stretch: range
    older: int
    newer: int
    is_fix: bool

    def search(self, *, is_flaky: bool) -> LineSearch:
        """A search for the change of the stretch."""
        ends = self.stretch[0], self.stretch[-1]
        good, bad = ends[::-1] if self.is_fix else ends
        return LineSearch(ends[1] + 1, good=good, bad=bad, find_fix=self.is_fix, noise=Noise(is_flaky))

    def is_shown(self, search: LineSearch) -> bool:
        """Whether the runs show this change, and with the confidence that `bisect` asks for."""
        result = search.result
        is_found = result.boundary == (self.older, self.newer)
        return is_found and (search.is_noisy or (result.confidence or 0.0) >= CONFIDENCE)


def parts_of(verdicts: Mapping[int, Verdict]) -> tuple[Part, ...]:
    """The changes between neighbouring judged positions, each in the stretch between the changes around it."""
    judged = sorted(position for position, verdict in verdicts.items() if verdict is not Verdict.SKIP)
    changes = [(older, newer) for older, newer in pairwise(judged) if verdicts[older] is not verdicts[newer]]
    starts = [*judged[:1], *(newer for _, newer in changes)]
    ends = [*(older for older, _ in changes[1:]), *judged[-1:]]
    return tuple(
        Part(range(start, end + 1), older, newer, verdicts[older] is Verdict.BAD)
        for (older, newer), start, end in zip(changes, starts, ends, strict=False)
    )


class Scan:
    """Search for all windows; its candidates are runs, and all follows from those so far.

    `reading` returns the number of a recorded run, None if the run was judged by something else. Raises ValueError as
    `CoarseGrid` does.
    """

    def __init__(self, count: int, max_gap: int, reading: Callable[[Trial], Reading | None] = lambda _: None) -> None:
        self._count, self._reading = count, reading
        self._grid = CoarseGrid(count, max_gap)
        self._runs: dict[Trial, Verdict] = {}
        self._counts: dict[int, Counter[Verdict]] = {}
        self._lines: dict[tuple[range, bool, bool], tuple[LineSearch, list[Trial]]] = {}
        self._requested: tuple[Trial, ...] = ()

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n runs to make now; earlier requests that still matter come first."""
        needed = self._needed(n)
        still = [trial for trial in self._requested if trial in needed]
        wanted = tuple(dict.fromkeys((*still, *needed)))[: max(n, 0)]
        self._requested = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n first runs that may be requested next. Repetitions need no preparation and are left out."""
        searches = [search for search in self._searches if not search.done]
        likely = (trial for search in searches for trial in search.foresee(n))
        return tuple(islice((trial for trial in likely if trial not in self._requested), max(n, 0)))

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict of a run. Raises ValueError for an unknown position or a second, different verdict."""
        if candidate.attempt == 0 or candidate.position >= self._count:
            self._grid.tell(candidate, verdict)
        if candidate not in self._runs:
            self._counts.setdefault(candidate.position, Counter())[verdict] += 1
        record(self._runs, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether all windows are found, and each change is sure or can't be."""
        return not self._needed(1)

    def remaining(self) -> int:
        """Upper estimate of the runs left, if no two runs of a release disagree from now on."""
        return len(self._again) + sum(search.remaining() for search in self._searches) + len(self._outermost)

    @property
    def is_flaky(self) -> bool:
        """Whether a position has both passed and failed, and no numbers tell on which side it is."""
        return any(
            counts[Verdict.BAD] and counts[Verdict.GOOD] and self._readings(position) is None
            for position, counts in self._counts.items()
        )

    @property
    def verdicts(self) -> dict[int, Verdict]:
        """The verdict on each position that was run, as far as its runs so far show it."""
        return {position: self._verdict(position) for position in sorted(self._counts)}

    @property
    def changes(self) -> tuple[tuple[Part, LineSearch], ...]:
        """Each change that the runs show so far, the oldest first, with its search."""
        is_flaky = self.is_flaky
        changes = []
        for part in parts_of(self.verdicts):
            key = (part.stretch, part.is_fix, is_flaky)
            search, new = self._lines.setdefault(key, (part.search(is_flaky=is_flaky), []))
            for trial in islice(self._runs, len(new), None):
                new.append(trial)
                if trial.position in part.stretch:
                    search.tell(trial, self._runs[trial])
            changes.append((part, search))
        return tuple(changes)

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions will not be run as things stand."""
        verdicts = self.verdicts
        matter = {position for part in parts_of(verdicts) for position in range(part.older, part.newer)}
        matter.update(trial.position for trial in self._needed(self._count))
        return tuple(state_of(verdicts.get(p), matters=p in matter) for p in range(self._count))

    def _needed(self, n: int) -> list[Trial]:
        """The runs that are needed, as far as they are known: n at a time of each search."""
        first = [trial for search in self._searches for trial in search.ask(n)]
        return [*self._again, *first] or self._outermost

    @property
    def _searches(self) -> Sequence[CoarseGrid | LineSearch]:
        """The grid, then the searches for the changes."""
        if not self._grid.done:
            return [self._grid]
        changes = self.changes
        # Once the runs speak against a change, the answer is not sure, whatever the others are.
        if any(search.is_noisy and search.done and not part.is_shown(search) for part, search in changes):
            return []
        return [search for _, search in changes]

    def _verdict(self, position: int) -> Verdict:
        if (readings := self._readings(position)) is not None:
            return readings.verdict or Verdict.SKIP
        counts = self._counts[position]
        return next((verdict for verdict in (Verdict.BAD, Verdict.GOOD) if counts[verdict]), Verdict.SKIP)

    def _readings(self, position: int) -> Readings | None:
        """The numbers of a position; None if its first run was judged by something else."""
        trials = sorted((trial for trial in self._runs if trial.position == position), key=attrgetter("attempt"))
        readings = [self._reading(trial) for trial in trials]
        return (
            readings_of([reading for reading in readings if reading is not None]) if readings and readings[0] else None
        )

    @property
    def _again(self) -> list[Trial]:
        """A further run of each position that needs more before it has a verdict."""
        bad = [counts for counts in self._counts.values() if counts[Verdict.BAD]]
        fails, passes = (sum(counts[verdict] for counts in bad) for verdict in (Verdict.BAD, Verdict.GOOD))
        doubt = _DOUBT / max(1, len(self._counts) - len(bad))
        wanted = min(passes_needed(fails, fails + passes, doubt, _MOST), _MOST) if self.is_flaky else 1
        return [
            self._next(position)
            for position, counts in self._counts.items()
            if counts[Verdict.SKIP] <= _LOST and self._is_open(position, counts, wanted)
        ]

    def _is_open(self, position: int, counts: Counter[Verdict], wanted: int) -> bool:
        if (readings := self._readings(position)) is not None:
            return readings.is_open
        return 0 < counts[Verdict.GOOD] < wanted and not counts[Verdict.BAD]

    @property
    def _outermost(self) -> list[Trial]:
        """The second run of a bad position at either end of the range. No search repeats it, and it may be luck."""
        verdicts = self.verdicts
        judged = [position for position, verdict in verdicts.items() if verdict is not Verdict.SKIP]
        ends = dict.fromkeys((*judged[:1], *judged[-1:]))
        once = (p for p in ends if verdicts[p] is Verdict.BAD and self._counts[p].total() == 1)
        return [self._next(position) for position in once]

    def _next(self, position: int) -> Trial:
        return next(trial for attempt in count() if (trial := Trial(position, attempt)) not in self._runs)
