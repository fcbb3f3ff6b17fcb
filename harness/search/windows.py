"""Windows: finds every stretch of positions in which a repro was broken, without running each of them.

A coarse scan runs first, so that no gap between neighbouring runs is wider than the stride. Then every change that it
found, from good to bad or back, is bisected down to neighbours. A window that is narrower than the stride can hide
between two runs: `WindowsResult.widest_unseen` is the length of the longest stretch that was not run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.bisection import cut, cut_gap, gaps_of, runs_to_close
from harness.search.protocol import PositionState, foresee, record, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CHANCES = {Verdict.GOOD: 0.5, Verdict.BAD: 0.4, Verdict.SKIP: 0.1}


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

    `widest_unseen` is the length of the longest stretch of positions that were not run; a window of at most that length
    can have been missed. `doubtful` are positions at changes whose verdict was not confirmed by enough runs.
    """

    windows: tuple[Window, ...]
    suspects: tuple[int, ...]
    skipped: tuple[int, ...]
    widest_unseen: int
    doubtful: tuple[int, ...] = ()


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

        def plan(supposed: Mapping[int, Verdict]) -> int | None:
            return next(iter(self._wanted({**self._told, **supposed}, 1)), None)

        useful = self._useful(self._told)
        asked = tuple(p for p in self._asked if p in useful) or self._wanted(self._told, 1)
        return foresee(n, plan=plan, chances=lambda _: _CHANCES, asked=asked)

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
        unseen = gaps_of(set(range(self._count)).difference(self._told))
        return WindowsResult(
            windows=tuple(windows),
            suspects=tuple(sorted(suspects)),
            skipped=tuple(sorted(p for p, v in self._told.items() if v is Verdict.SKIP)),
            widest_unseen=max(map(len, unseen), default=0),
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
