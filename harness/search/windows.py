"""Windows: finds every stretch of positions in which a repro was broken, without running each of them.

A coarse scan runs first, so that no gap between neighbouring runs is wider than the stride. Then every change that it
found, from good to bad or back, is bisected down to neighbours. A window that is narrower than the stride can hide
between two runs.

`SureScan` is a scan that no lucky run decides: a `LineSearch` makes each change sure. It knows all runs from the
change before to the one after, and repeats runs as if only this change were asked for. A release is bad if any of its
runs is. While no two runs of a release disagree, one pass of the others is enough. After a disagreement the failure
rate of the bad releases is known, and each good release is run as often as that rate asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise

from attrs import evolve, frozen

from harness.model.verdict import Verdict
from harness.search.line import LineSearch
from harness.search.posterior import CONFIDENCE, Noise, passes_needed
from harness.search.protocol import PositionState, Repeated, Trial, foresee, record, state_of
from harness.search.survey import cut, cut_gap, gaps_of, runs_to_close


@frozen
class Window:
    """A stretch that was bad, from the run at `first_bad` to the run at `last_bad`.

    `started_after` is the last good position before it (None: bad from the oldest testable position on), `fixed_at` the
    first good one after it (None: still bad at the newest). `suspects` are the skipped or untried positions at its
    edges, which may belong to it.
    """

    first_bad: int
    last_bad: int
    fixed_at: int | None
    started_after: int | None
    suspects: tuple[int, ...] = ()


@frozen
class WindowsResult:
    """All windows found, oldest first, and the uncertain positions at their edges.

    `doubtful` are positions at changes whose verdict was not confirmed by enough runs.
    """

    windows: tuple[Window, ...]
    suspects: tuple[int, ...]
    doubtful: tuple[int, ...] = ()

    @property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """The older and the newer side of each change that has both, the oldest change first."""
        sides = [
            side
            for window in self.windows
            for side in ((window.started_after, window.first_bad), (window.last_bad, window.fixed_at))
        ]
        return tuple((older, newer) for older, newer in sides if older is not None and newer is not None)


@frozen
class _Stretch:
    """The untried gaps between two neighbouring testable runs, or between one and the end of the range."""

    gaps: tuple[range, ...]
    changes: bool


class WindowScan:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are positions.

    `known`: verdicts from earlier runs, used instead of a run nearby. `max_gap`: the stride; at most max_gap - 1
    consecutive positions are not run, and 1 runs every position. By default the stride is chosen so that the scan and
    its bisections run less than a third of the positions, if possible.
    Raises ValueError if `count` or `max_gap` is below 1.
    """

    def __init__(self, count: int, known: Mapping[int, Verdict] | None = None, max_gap: int | None = None) -> None:
        if count < 1 or (max_gap is not None and max_gap < 1):
            raise ValueError("a scan needs at least one position and a max_gap of at least 1")
        self._count = count
        self.stride = stride_for(count) if max_gap is None else max_gap
        self._told: dict[int, Verdict] = {}
        self._asked: tuple[int, ...] = ()
        for position, verdict in (known or {}).items():
            self.tell(position, verdict)

    def ask(self, n: int = 1) -> tuple[int, ...]:
        """Up to n positions to run now; earlier requests that still matter come first."""
        wanted = self._wanted(self._told, n)
        still = [position for position in self._asked if position in self._useful(self._told)]
        self._asked = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[int, ...]:
        """Up to n positions that may be requested next."""

        def plan(supposed: Mapping[int, Verdict]) -> tuple[int, ...]:
            return self._wanted({**self._told, **supposed}, 1)

        useful = self._useful(self._told)
        return foresee(n, plan=plan, asked=tuple(p for p in self._asked if p in useful) or plan({}))

    def tell(self, candidate: int, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict."""
        if not 0 <= candidate < self._count:
            raise ValueError(f"position {candidate} is not between 0 and {self._count - 1}")
        record(self._told, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether every change is between neighbours and no gap is wider than the stride allows."""
        return not self._useful(self._told)

    def remaining(self) -> int:
        """Upper estimate of the runs left, as if all neighbouring runs of the scan differed."""
        ends = [p for p in (self._count - 1, 0) if p not in self._told]
        runs = len(set(ends))
        for stretch in self._stretches({**dict.fromkeys(ends, Verdict.SKIP), **self._told}):
            for gap in stretch.gaps:
                points = self._scan_points(gap, self._told)
                if points:
                    parts = (len(points) + 1) * (self.stride - 1).bit_length()
                    runs += min(len(gap), len(points) + parts)
                elif stretch.changes or ends:
                    runs += runs_to_close([gap])
        return runs

    @property
    def result(self) -> WindowsResult:
        """The windows found so far."""
        testable = sorted(p for p, verdict in self._told.items() if verdict is not Verdict.SKIP)
        windows: list[Window] = []
        last_good: int | None = None
        run: list[int] = []
        for position in [*testable, None]:
            if position is not None and self._told[position] is Verdict.BAD:
                run.append(position)
                continue
            if run:
                windows.append(self._window(run, last_good, position))
            run, last_good = [], position
        suspects = {p for window in windows for p in window.suspects}
        return WindowsResult(
            windows=tuple(windows),
            suspects=tuple(sorted(suspects)),
        )

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions will not be run."""
        useful = self._useful(self._told)
        return tuple(state_of(self._told.get(p), matters=p in useful) for p in range(self._count))

    def _window(self, run: list[int], before: int | None, after: int | None) -> Window:
        lower = range(-1 if before is None else before + 1, run[0])
        upper = range(run[-1] + 1, self._count if after is None else after)
        edges = [p for p in (*lower, *upper) if p >= 0]
        return Window(run[0], run[-1], after, before, tuple(edges))

    def _stretches(self, told: Mapping[int, Verdict]) -> Iterator[_Stretch]:
        marks = sorted(p for p, verdict in told.items() if verdict is not Verdict.SKIP)
        for low, high in pairwise([-1, *marks, self._count]):
            gaps = gaps_of(p for p in range(low + 1, high) if p not in told)
            if gaps:
                inner = low >= 0 and high < self._count
                yield _Stretch(tuple(gaps), inner and told[low] is not told[high])

    def _scan_points(self, gap: range, told: Mapping[int, Verdict]) -> list[int]:
        """The points that keep the gaps narrow enough: half as wide next to a skip, which shows nothing.

        Only a gap that is already narrow enough is halved, so that a skip at one end of a long gap does not halve all
        of it.
        """
        widest = self.stride - 1
        if len(gap) <= widest and Verdict.SKIP in (told.get(gap.start - 1), told.get(gap.stop)):
            widest //= 2
        points = -(-(len(gap) + 1) // (widest + 1)) - 1
        return cut_gap(gap, points)

    def _useful(self, told: Mapping[int, Verdict]) -> set[int]:
        """Every untried position whose verdict can still matter now."""
        useful = {0, self._count - 1}.difference(told)
        for stretch in self._stretches(told):
            for gap in stretch.gaps:
                if stretch.changes or self._scan_points(gap, told):
                    useful.update(gap)
        return useful

    def _wanted(self, told: Mapping[int, Verdict], n: int) -> tuple[int, ...]:
        """Earlier requests that still matter, then the two ends, the points of the scan, cuts at the changes."""
        useful = self._useful(told)
        wanted = [position for position in self._asked if position in useful][: max(n, 0)]
        while len(wanted) < n:
            # A running position counts as tried: it ends a gap, whatever its verdict.
            new = self._next(told, wanted, n - len(wanted))
            if not new:
                break
            wanted += new
        return tuple(wanted)

    def _next(self, told: Mapping[int, Verdict], running: list[int], n: int) -> list[int]:
        ends = [p for p in (self._count - 1, 0) if p not in told and p not in running]
        if ends:
            return list(dict.fromkeys(ends))[:n]
        scan: list[int] = []
        cuts: list[range] = []
        for stretch in self._stretches(told):
            for gap in stretch.gaps:
                for part in gaps_of(set(gap).difference(running)):
                    points = self._scan_points(part, told)
                    scan += points
                    if stretch.changes and not points:
                        cuts.append(part)
        return scan[:n] if scan else cut(cuts, n)


def stride_for(count: int) -> int:
    """The narrowest stride whose scan, with the bisections of four changes, runs under a third of `count`.

    It is a power of two, so that bisecting a gap between two runs costs the fewest runs for its width. If four changes
    do not fit into that third, two are assumed; if two do not fit either, the stride with the fewest runs is taken. If
    that would run most of the positions, all are run, so that no window of one position is missed to save a few runs.
    """
    costs = {1 << k: (-(-(count - 1) // (1 << k)) + 1, k) for k in range(max(count - 1, 1).bit_length())}
    for changes in (4, 2):
        fitting = [s for s, (scan, each) in costs.items() if 3 * (scan + changes * each) < count]
        if fitting:
            return min(fitting)
    cheapest = min(costs, key=lambda s: (costs[s][0] + 2 * costs[s][1], s))
    scan, each = costs[cheapest]
    return 1 if 2 * (scan + 2 * each) > count else cheapest


_DOUBT = 0.01  # that a release is called good by luck, for all of them together
_MOST = 24  # passes of one release
_LOST = 4  # repetitions that may be skipped


class SureScan(Repeated):
    """Search like `WindowScan` with runs (`Trial`) as candidates. Raises ValueError as `WindowScan` does."""

    _search: WindowScan

    def __init__(self, count: int, max_gap: int | None = None) -> None:
        super().__init__(WindowScan(count, max_gap=max_gap))
        self._count, self._max_gap = count, max_gap
        self._counts: dict[int, Counter[Verdict]] = {}
        self._bisections: dict[tuple[range, bool, bool], _Part] = {}

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict of one run. Raises ValueError for an unknown position or a second, different verdict."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        if candidate not in self._told:
            self._counts.setdefault(candidate.position, Counter())[verdict] += 1
        record(self._told, candidate, verdict)
        settled = {p: side for p in sorted(self._counts) if (side := self._side(p)) is not None}
        if self._settled.items() <= settled.items():
            for position in settled.keys() - self._settled.keys():
                self._search.tell(position, settled[position])
        else:  # a release that was good failed, or needs more runs now
            self._search = WindowScan(self._count, settled, self._max_gap)
        self._settled = settled

    @property
    def done(self) -> bool:
        """Whether all windows are found, and each change is sure or can't be."""
        return self._search.done and not self._further(1)

    def remaining(self) -> int:
        """Upper estimate of the runs left, if no two runs of a release disagree from now on."""
        if self._search.done:
            return len(self._once()) + sum(part.search.remaining() for part in self._open())
        return self._search.remaining() * (self._needed() if self.is_flaky else 1)

    @property
    def result(self) -> WindowsResult:
        """The windows found so far. `doubtful` are releases whose runs don't show their side of a change."""
        found = self._search.result
        doubtful = {side for change, part in self._parts().items() if not part.shows(change) for side in change}
        doubtful |= {p for p in self._outermost() if self._fails(p) + self._passes(p) == 1}
        if self.is_flaky and Verdict.GOOD not in self._settled.values():
            doubtful |= {position for position in self._settled if self._passes(position)}
        return evolve(found, doubtful=tuple(sorted(doubtful)))

    @property
    def is_flaky(self) -> bool:
        """Whether a position has both passed and failed."""
        return any(self._fails(p) and self._passes(p) for p in self._counts)

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions will not be run."""
        waiting = {trial.position for trial in self._asked}
        return tuple(
            state_of(self._settled.get(p), matters=state is PositionState.UNTRIED or p in waiting)
            for p, state in enumerate(self._search.states)
        )

    def _fails(self, position: int) -> int:
        return self._counts[position][Verdict.BAD]

    def _passes(self, position: int) -> int:
        return self._counts[position][Verdict.GOOD]

    def _side(self, position: int) -> Verdict | None:
        """The verdict of a position, None while runs are missing."""
        if self._fails(position):
            return Verdict.BAD
        if not self._passes(position):
            return Verdict.SKIP
        return None if self._missing(position) else Verdict.GOOD

    def _missing(self, position: int) -> tuple[Trial, ...]:
        """The runs that a position needs before it has a verdict."""
        runs = self._counts.get(position, Counter())
        if runs[Verdict.BAD] or runs[Verdict.SKIP] > _LOST:
            return ()
        fresh = (trial for attempt in range(_MOST) if (trial := Trial(position, attempt)) not in self._told)
        return tuple(islice(fresh, max(0, (self._needed() if self.is_flaky else 1) - runs[Verdict.GOOD])))

    def _needed(self) -> int:
        """How many passes show that a position is good, by the failure rate of the bad ones."""
        bad = [p for p in self._counts if self._fails(p)]
        fails, passes = sum(map(self._fails, bad)), sum(map(self._passes, bad))
        return passes_needed(fails, fails + passes, _DOUBT / max(1, len(self._counts) - len(bad)), _MOST)

    def _further(self, n: int) -> list[Trial]:
        """The runs that the windows still need."""
        return [*self._once(), *(trial for part in self._open() for trial in part.ask(n))]

    def _once(self) -> list[Trial]:
        """The second run of the outermost releases that failed."""
        return [Trial(position, 1) for position in self._outermost() if self._counts[position].total() == 1]

    def _outermost(self) -> set[int]:
        """The bad positions at the open ends of windows. No bisection repeats them, and one failure may be luck."""
        windows = self._search.result.windows
        return {w.first_bad for w in windows if w.started_after is None} | {
            w.last_bad for w in windows if w.fixed_at is None
        }

    def _open(self) -> list[_Part]:
        """The bisections that go on; none once the runs speak against a change, since the answer is not sure then."""
        parts = self._parts()
        if any(part.search.is_noisy and part.search.done and not part.shows(change) for change, part in parts.items()):
            return []
        return [part for part in parts.values() if not part.search.done]

    def _parts(self) -> dict[tuple[int, int], _Part]:
        """The bisection of each change, once the scan is done: from the change before it to the one after it."""
        testable = [position for position, verdict in self._settled.items() if verdict is not Verdict.SKIP]
        if not self._search.done or not testable:
            return {}
        changes = self._search.result.changes
        starts = [testable[0], *(newer for _, newer in changes)]
        ends = [*(older for older, _ in changes[1:]), testable[-1]]
        parts = {}
        for change, start, end in zip(changes, starts, ends, strict=False):
            key = (range(start, end + 1), self._settled[change[0]] is Verdict.BAD, self.is_flaky)
            parts[change] = self._bisections.setdefault(key, _Part(*key))
            parts[change].hear(self._told)
        return parts


class _Part:
    """A sure bisection of a stretch of positions that has one change."""

    def __init__(self, stretch: range, is_fix: bool, is_flaky: bool) -> None:
        last = len(stretch) - 1
        good, bad = (last, 0) if is_fix else (0, last)
        self.search = LineSearch(len(stretch), good=good, bad=bad, find_fix=is_fix, noise=Noise(is_flaky))
        self._stretch = stretch
        self._heard = 0

    def hear(self, told: Mapping[Trial, Verdict]) -> None:
        """Tell it those runs of the scan that are new since the last call."""
        for trial, verdict in islice(told.items(), self._heard, None):
            if trial.position in self._stretch:
                self.search.tell(evolve(trial, position=self._stretch.index(trial.position)), verdict)
        self._heard = len(told)

    def ask(self, n: int) -> list[Trial]:
        """Up to n runs to make now."""
        return [evolve(trial, position=self._stretch[trial.position]) for trial in self.search.ask(n)]

    def shows(self, change: tuple[int, int]) -> bool:
        """Whether the runs show this change, and with the confidence that `bisect` asks for."""
        result = self.search.result
        is_there = result.boundary == tuple(map(self._stretch.index, change))
        return is_there and (self.search.is_noisy or (result.confidence or 0.0) >= CONFIDENCE)
