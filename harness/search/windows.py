"""Windows: finds every stretch of positions in which a repro was broken, without running each of them.

A coarse scan runs first, so that no gap between neighbouring runs is wider than the stride. Then every change that it
found, from good to bad or back, is bisected down to neighbours. A window that is narrower than the stride can hide
between two runs.

`SureScan` is a scan that no lucky run decides: it runs the releases on both sides of each change again. A release is
bad if any of its runs is, and good only after enough passes. While no two runs of a release disagree, one pass is
enough, except next to a window: there the chance that a flaky bug, with any failure rate, shows in all bad runs of the
window and in none of these passes has to be small. After a disagreement the failure rate of the bad releases is known,
and each good release is run as often as that rate asks for. Good releases may fail now and then, too, so each change
then has to be likely by all runs beside it, whatever the two failure rates are (`rates.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from math import comb, exp, lgamma
from typing import NamedTuple

from attrs import evolve, frozen

from harness.model.verdict import Verdict
from harness.search.bisection import cut, cut_gap, gaps_of, runs_to_close
from harness.search.protocol import PositionState, Repeated, Trial, foresee, record, state_of
from harness.search.rates import FLAKY, UNKNOWN, Counts, Posterior, wary


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


_DOUBT = 0.01  # for all changes together
_CHANCE = 1 - _DOUBT / 2  # of each change by the runs beside it; half of the doubt is kept for a prior that is wrong
_PRIORS = {True: wary(FLAKY), False: wary(UNKNOWN)}
_BAD_AGAIN = (
    2  # failures of the bad release at a change: one failure of a release that hardly ever fails proves nothing
)
_COMPARED = 6  # runs of it once a disagreement was seen: a good release that fails now and then shows by its rate
_RARE = 0.005  # the chance below which two parts of a window have two failure rates
_MOST = 24  # runs of one release
_REPEATED = range(1, _MOST + 1)
_LOST = 4  # repetitions that may be skipped


class _Edge(NamedTuple):
    """A change between the positions `good` and `bad`, and how far the runs beside it go on both sides."""

    good_end: int
    bad_end: int
    good: int
    bad: int


class SureScan(Repeated):
    """Search like `WindowScan` with runs (`Trial`) as candidates. Raises ValueError as `WindowScan` does."""

    _search: WindowScan

    def __init__(self, count: int, max_gap: int | None = None) -> None:
        super().__init__(WindowScan(count, max_gap=max_gap))
        self._count, self._max_gap = count, max_gap
        self._counts: dict[int, Counter[Verdict]] = {}

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record the verdict of one run. Raises ValueError for an unknown position or a second, different verdict."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        if candidate not in self._told:
            self._counts.setdefault(candidate.position, Counter())[verdict] += 1
        record(self._told, candidate, verdict)
        settled = {p: side for p in self._positions() if (side := self._side(p)) is not None}
        if self._settled.items() <= settled.items():
            for position in settled.keys() - self._settled.keys():
                self._search.tell(position, settled[position])
        else:  # a release that was good failed, or needs more runs now
            self._search = WindowScan(self._count, settled, self._max_gap)
        self._settled = settled

    @property
    def done(self) -> bool:
        """Whether all windows are found and all changes were run again."""
        return self._search.done and not self._further()

    def remaining(self) -> int:
        """Upper estimate of the runs left, if no two runs of a release disagree from now on."""
        if self._search.done:
            return len(self._further())
        return self._search.remaining() * (self._needed() if self.is_flaky else 1)

    @property
    def result(self) -> WindowsResult:
        """The windows found so far. `doubtful` are the good and bad positions at changes that runs did not confirm."""
        found = self._search.result
        doubtful = {p for window in found.windows for p in self._edges(window) if not self._is_sure(window, p)}
        doubtful |= {window.first_bad for window in found.windows if self._has_two_rates(window)}
        doubtful |= {position for edge in self._unlikely() for position in (edge.good, edge.bad)}
        if self.is_flaky and Verdict.GOOD not in self._settled.values():
            doubtful |= {p for p in self._settled if self._passes(p)}
        return evolve(found, doubtful=tuple(sorted(doubtful)))

    @property
    def is_flaky(self) -> bool:
        """Whether a position has both passed and failed."""
        return any(self._fails(p) and self._passes(p) for p in self._counts)

    def rate(self, position: int) -> tuple[int, int]:
        """How many runs of a position failed, of how many that could be judged."""
        return self._fails(position), self._fails(position) + self._passes(position)

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions will not be run."""
        waiting = {trial.position for trial in self._asked}
        return tuple(
            state_of(self._settled.get(p), matters=state is PositionState.UNTRIED or p in waiting)
            for p, state in enumerate(self._search.states)
        )

    def _positions(self) -> list[int]:
        return sorted(self._counts)

    def _of(self, position: int, verdict: Verdict) -> int:
        return self._counts[position][verdict] if position in self._counts else 0

    def _fails(self, position: int) -> int:
        return self._of(position, Verdict.BAD)

    def _passes(self, position: int) -> int:
        return self._of(position, Verdict.GOOD)

    def _side(self, position: int) -> Verdict | None:
        """The verdict of a position, None while runs are missing."""
        if self._fails(position):
            return Verdict.BAD
        if not self._passes(position):
            return Verdict.SKIP
        return None if self._missing(position) else Verdict.GOOD

    def _missing(self, position: int) -> tuple[Trial, ...]:
        """The runs that a position needs before it has a verdict."""
        if self._fails(position):
            return ()
        return self._more(position, (self._needed() if self.is_flaky else 1) - self._passes(position))

    def _more(self, position: int, runs: int) -> tuple[Trial, ...]:
        """The next runs of a position, none if too many were lost or made."""
        is_judged = self._passes(position) + self._fails(position)
        if position in self._counts and (self._of(position, Verdict.SKIP) > _LOST or not is_judged):
            return ()
        fresh = (trial for attempt in range(_MOST) if (trial := Trial(position, attempt)) not in self._told)
        return tuple(islice(fresh, max(0, runs)))

    def _needed(self) -> int:
        """How many passes show that a position is good, by the failure rate of the bad ones (uniform prior)."""
        bad = [p for p in self._positions() if self._fails(p)]
        fails, passes = sum(map(self._fails, bad)), sum(map(self._passes, bad))
        doubt = _DOUBT / max(1, len(self._positions()) - len(bad))
        chances = (exp(_beta(fails, passes + more) - _beta(fails, passes)) for more in _REPEATED)
        return next((more for more, chance in zip(_REPEATED, chances, strict=True) if chance <= doubt), _MOST + 1)

    def _further(self) -> list[Trial]:
        """The runs that the changes still need."""
        windows = self._search.result.windows
        wanted: dict[Trial, None] = {}
        for window in windows:
            for position in self._edges(window):
                if not self._is_sure(window, position):
                    wanted |= dict.fromkeys(self._more(position, self._lacking(window, position)))
        if not wanted:
            wanted = dict.fromkeys(trial for edge in self._unlikely() for trial in self._next_at(edge))
        return list(wanted)

    def _unlikely(self) -> list[_Edge]:
        """The changes that may well be elsewhere, if good releases fail now and then, too: by all runs beside them."""
        windows = self._search.result.windows
        found: list[_Edge] = []
        for window, before, after in zip(windows, (None, *windows), (*windows[1:], None), strict=False):
            if window.started_after is not None:
                start = before.fixed_at if before is not None and before.fixed_at is not None else 0
                found.append(_Edge(start, window.last_bad, window.started_after, window.first_bad))
            if window.fixed_at is not None:
                end = after.started_after if after is not None and after.started_after is not None else self._count - 1
                found.append(_Edge(end, window.first_bad, window.fixed_at, window.last_bad))
        return [edge for edge in found if self._chance(edge) < _CHANCE]

    def _chance(self, edge: _Edge, again: int | None = None) -> float:
        """The probability that the failure rate changes at an edge, if it changes once between its ends.

        With `again`, as if another run of that position had the same verdict as before.
        """
        step = 1 if edge.good_end <= edge.bad_end else -1
        counts = {}
        for number, position in enumerate(range(edge.good_end, edge.bad_end + step, step)):
            bad, runs = self.rate(position)
            more = int(position == again)
            counts[number] = Counts(bad + (more if position == edge.bad else 0), runs + more)
        cuts = Posterior.of(len(counts), counts, _PRIORS[self.is_flaky]).cuts
        return sum(cuts[abs(edge.good - edge.good_end) + 1 : abs(edge.bad - edge.good_end) + 1])

    def _next_at(self, edge: _Edge) -> tuple[Trial, ...]:
        """The run at an edge that tells more, if it agrees with those before it."""
        both = [trial for position in (edge.bad, edge.good) for trial in self._more(position, 1)]
        if len(both) < 2 or self.is_flaky:
            return tuple(both)
        return (max(both, key=lambda trial: self._chance(edge, trial.position)),)

    def _edges(self, window: Window) -> Iterable[int]:
        """The first and last position of a window, and the good ones next to them."""
        ends = (window.started_after, window.first_bad, window.last_bad, window.fixed_at)
        return dict.fromkeys(p for p in ends if p is not None)

    def _is_sure(self, window: Window, position: int) -> bool:
        return self._lacking(window, position) <= 0

    def _lacking(self, window: Window, position: int) -> int:
        """How many more runs with the same verdict a position at a change of a window needs."""
        fails, runs = self.rate(position)
        again, passes = self._needed_at(window)
        if self._settled.get(position) is not Verdict.BAD:
            return passes - runs
        if self.is_flaky:
            return max(_BAD_AGAIN - fails, _COMPARED - runs)
        return max(_BAD_AGAIN - fails, again if position == window.first_bad else 0)

    def _needed_at(self, window: Window) -> tuple[int, int]:
        """How many more failures a window needs, and how many passes each good position at its changes."""
        if self.is_flaky:
            return 0, self._needed()
        bad = range(window.first_bad, window.last_bad + 1)
        repeated = {window.first_bad, window.last_bad}
        fails = sum(map(self._fails, bad)) + sum(max(0, _BAD_AGAIN - self._fails(p)) for p in repeated)
        # Any of the runs so far may be the lucky one.
        doubt = _DOUBT / (2 * len(self._search.result.windows) * len(self._counts))
        goods = sum(good is not None for good in (window.started_after, window.fixed_at))
        return min(_enough(fails, doubt), key=lambda both: both[0] + goods * both[1])

    def _has_two_rates(self, window: Window) -> bool:
        """Whether one part of a window fails far more often than the rest, so a failure alone does not show the bug."""
        within = [self.rate(p) for p in self._positions() if window.first_bad <= p <= window.last_bad]
        all_fails, all_runs = (sum(column) for column in zip(*within, strict=True))
        fails = runs = 0
        for here, of in within[:-1]:
            fails, runs = fails + here, runs + of
            if _as_far_apart(fails, runs, all_fails - fails, all_runs - runs) < _RARE:
                return True
        return False


def _beta(fails: int, passes: int) -> float:
    """The logarithm of the chance of these runs in this order, if all failure rates are alike before."""
    return lgamma(fails + 1) + lgamma(passes + 1) - lgamma(fails + passes + 2)


def _enough(fails: int, doubt: float) -> list[tuple[int, int]]:
    """The pairs of further failures and passes with which so much luck is unlikely, whatever the failure rate is."""
    pairs = ((again, passes) for again in range(_MOST) for passes in _REPEATED)
    return [(again, passes) for again, passes in pairs if _luck(fails + again, passes) <= doubt]


def _luck(fails: int, passes: int) -> float:
    """The chance of these runs in this order, at the failure rate for which it is highest."""
    runs = fails + passes
    return float((fails / runs) ** fails * (passes / runs) ** passes)


def _as_far_apart(fails: int, runs: int, other_fails: int, other_runs: int) -> float:
    """The chance that runs with one failure rate differ so much between two groups (Fisher's exact test, one side)."""
    every, failed = runs + other_runs, fails + other_fails
    fewest, most = max(0, failed - other_runs), min(runs, failed)
    more = fails * other_runs > other_fails * runs
    tail = range(fails, most + 1) if more else range(fewest, fails + 1)
    return sum(comb(runs, k) * comb(other_runs, failed - k) for k in tail) / comb(every, failed)
