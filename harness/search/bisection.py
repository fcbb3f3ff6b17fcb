"""Bisection: finds the neighbours between which good turns bad, or bad turns good, in few runs.

It first runs the ends, the bad one before the good one. It moves an end that can't be tested, and steps back to find a
good end if none is given. All state is computed from the recorded verdicts, so these may arrive in any order and come
from earlier runs.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import frozen

from harness.model.boundary import Counts, Effect
from harness.model.verdict import Verdict
from harness.search.protocol import PositionState, Trial, foresee, record, state_of


class Bisection:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad`: the ends. For a regression, good is older than bad. Without `bad` the newest position is the bad end;
    without `good` the search looks for a good one 1, 2, 4, ... positions before the bad end, down to the oldest. With
    `find_fix`, bad is older than good; the defaults are the oldest position for bad and the newest for good. Only the
    first run of a position counts.

    With one lane it runs the two ends and ceil(log2(n + 1)) of the n positions between them, if none is skipped.
    Raises ValueError if there are no positions, or the ends are out of range or in the wrong order.
    """

    def __init__(self, count: int, *, good: int | None = None, bad: int | None = None, find_fix: bool = False) -> None:
        if count < 1:
            raise ValueError("a bisection needs at least one position")
        for end in (good, bad):
            if end is not None and not 0 <= end < count:
                raise ValueError(f"position {end} is not between 0 and {count - 1}")
        if good is not None and bad is not None and (good <= bad if find_fix else good >= bad):
            raise ValueError(
                f"good {good} and bad {bad} are in the wrong order to find a {'fix' if find_fix else 'regression'}"
            )
        self._count = count
        self._find_fix = find_fix
        self._steps = good is None and not find_fix
        self._bad = bad if bad is not None else 0 if find_fix else count - 1
        self._good = good if good is not None else count - 1 if find_fix else 0
        self._told: dict[int, Verdict] = {}
        self._asked: tuple[Trial, ...] = ()
        self._width = 1

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests that still matter come first."""
        self._width = n
        wanted = self._wanted(self._told, n)
        still = self._still_matter()
        self._asked = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n trials that the next `ask` may return, if it requests as many as the last one."""

        def plan(supposed: Mapping[Trial, Verdict]) -> tuple[Trial, ...]:
            more = {trial.position: verdict for trial, verdict in supposed.items()}
            return self._wanted({**self._told, **more}, self._width)

        return foresee(n, plan=plan, asked=self._still_matter() or plan({}))

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        if candidate.attempt == 0:
            record(self._told, candidate.position, verdict)

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        return self.result.status is not BisectionStatus.OPEN

    def remaining(self) -> int:
        """Upper estimate of the runs left, if they run one at a time and none is skipped."""
        found = self._survey(self._told)
        if found.stage.over:
            return 0
        inside = set(found.open)
        runs = len(found.wanted)
        if found.stage in (Stage.BAD_END, Stage.GOOD_END):
            inside.difference_update(found.wanted)
            if found.stage is Stage.BAD_END and self._steps and found.good is None:
                runs += len(inside).bit_length() + 1
        return runs + runs_to_close(gaps_of(inside))

    @property
    def result(self) -> BisectionResult:
        """What is known so far."""
        found = self._survey(self._told)
        line = self._line(self._told)
        good = None if found.good is None or found.bad is None else self._at(found.good)
        bad = None if good is None or found.bad is None else self._at(found.bad)
        return BisectionResult(
            status=self._status(found),
            last_good=None if self._find_fix else good,
            first_bad=None if self._find_fix else bad,
            last_bad=bad if self._find_fix else None,
            first_good=good if self._find_fix else None,
            suspects=self._suspects(found, line),
            moved_ends=self._moved(found),
        )

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions can no longer affect the result."""
        matter = {self._at(d) for d in self._survey(self._told).open}
        return tuple(state_of(self._told.get(p), matters=p in matter) for p in range(self._count))

    # Positions on the line of `survey` are distances from the bad end towards the good end.

    def _at(self, distance: int) -> int:
        return self._bad + distance if self._find_fix else self._bad - distance

    def _line(self, told: Mapping[int, Verdict]) -> list[Verdict | None]:
        return [told.get(self._at(d)) for d in range(abs(self._bad - self._good) + 1)]

    def _survey(self, told: Mapping[int, Verdict]) -> Survey:
        return survey(self._line(told), steps=self._steps)

    def _wanted(self, told: Mapping[int, Verdict], n: int) -> tuple[Trial, ...]:
        found = self._survey(told)
        if found.wanted:
            return tuple(Trial(self._at(d)) for d in found.wanted[: max(n, 0)])
        if found.stage is not Stage.CUTS:
            return ()
        matter = {self._at(d) for d in found.open}
        kept = [trial.position for trial in self._asked]
        return tuple(Trial(position) for position in cut_around(matter, kept, n))

    def _still_matter(self) -> tuple[Trial, ...]:
        """Requested trials without a verdict that are still useful in the current stage."""
        found = self._survey(self._told)
        useful = found.wanted or (found.open if found.stage is Stage.CUTS else ())
        trials = {Trial(self._at(d)) for d in useful}
        return tuple(trial for trial in self._asked if trial in trials)

    def _status(self, found: Survey) -> BisectionStatus:
        if not found.stage.over:
            return BisectionStatus.OPEN
        if found.stage is Stage.NO_BAD:
            return BisectionStatus.NO_FAILURE
        if found.stage is Stage.NO_GOOD:
            return BisectionStatus.NOT_FIXED if self._find_fix else BisectionStatus.NOT_A_REGRESSION
        if found.bad is None or found.good is None or found.good - found.bad > 1:
            return BisectionStatus.INCONCLUSIVE
        return BisectionStatus.FIXED if self._find_fix else BisectionStatus.FOUND

    def _suspects(self, found: Survey, line: Sequence[Verdict | None]) -> tuple[int, ...]:
        if found.bad is not None and found.good is not None:
            newer = found.good if self._find_fix else found.bad
            return tuple(sorted(self._at(d) for d in {newer, *range(found.bad + 1, found.good)}))
        if found.stage is Stage.UNTESTABLE:
            return tuple(sorted(self._at(d) for d in range(len(line))))
        if found.stage is Stage.ALONE and found.bad is not None:
            # The older side of a regression, or the newer side of a fix, is somewhere among the skipped positions.
            first = found.bad + 1 if self._find_fix else found.bad
            return tuple(sorted(self._at(d) for d in range(first, len(line))))
        return ()

    def _moved(self, found: Survey) -> tuple[MovedEnd, ...]:
        if found.bad_end is None or found.good_end is None:
            return ()
        moved = []
        if found.bad_end > 0:
            moved.append(MovedEnd(Verdict.BAD, self._bad, self._at(found.bad_end)))
        if not self._steps and self._at(found.good_end) != self._good and found.good_end != found.bad_end:
            moved.append(MovedEnd(Verdict.GOOD, self._good, self._at(found.good_end)))
        return tuple(moved)


class BisectionStatus(enum.StrEnum):
    """How a bisection ended."""

    OPEN = "open"  # not ended yet
    FOUND = "found"  # last good and first bad are neighbours
    FIXED = "fixed"  # last bad and first good are neighbours
    NOT_A_REGRESSION = "not-a-regression"  # the oldest testable position is bad too
    NO_FAILURE = "no-failure"  # the bad end is good
    NOT_FIXED = "not-fixed"  # the newest testable position is bad too
    INCONCLUSIVE = "inconclusive"  # skipped positions hide the change: see the suspects
    FLAKY = "flaky"  # a side of the change has two different verdicts


@frozen
class MovedEnd:
    """The good or bad end (`end`), moved inward from `asked` to `used` because it could not be tested."""

    end: Verdict
    asked: int
    used: int


@frozen
class BisectionResult:
    """What is known, final once `status` is not OPEN. Positions are numbered from 0, the oldest.

    A regression sets `last_good` and `first_bad`, a fix sets `last_bad` and `first_good`, as soon as both sides have
    run. `suspects` are the positions that may have introduced the change: its newer side, and everything between the
    sides. `flaky` are the positions with two different verdicts.
    `confidence` is the probability that the answer is right (0 to 1, None if it was not computed); `good_side` and
    `bad_side` are the runs behind it. `effect` is the difference between the sides if the bug is recognised by a
    number. `trusts_ends`: the confidence holds only if the ends are as the user says.
    """

    status: BisectionStatus
    last_good: int | None = None
    first_bad: int | None = None
    last_bad: int | None = None
    first_good: int | None = None
    suspects: tuple[int, ...] = ()
    moved_ends: tuple[MovedEnd, ...] = ()
    flaky: tuple[int, ...] = ()
    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    trusts_ends: bool = False

    @property
    def boundary(self) -> tuple[int, int] | None:
        """The positions of the older and the newer side of the change, None if none was found."""
        if self.last_good is not None and self.first_bad is not None:
            return self.last_good, self.first_bad
        if self.last_bad is not None and self.first_good is not None:
            return self.last_bad, self.first_good
        return None


class Stage(enum.Enum):
    """What the bisection looks for next, or how it ended."""

    BAD_END = "bad end"
    GOOD_END = "good end"
    STEPS = "steps from the bad end towards a good one"
    CUTS = "cuts"
    BOUNDARY = "ended: no untried position between bad and good"
    NO_BAD = "ended: the bad end is good"
    NO_GOOD = "ended: the good end is bad"
    ALONE = "ended: nothing but the bad end can be tested"
    UNTESTABLE = "ended: nothing can be tested"

    @property
    def over(self) -> bool:
        """Whether nothing is left to run."""
        return self in _ENDED


_ENDED = frozenset({Stage.BOUNDARY, Stage.NO_BAD, Stage.NO_GOOD, Stage.ALONE, Stage.UNTESTABLE})


@frozen
class Survey:
    """The stage of a bisection; all numbers are positions on the line.

    `bad_end` is the testable position nearest to 0, `good_end` the one farthest from it; both may be untried. `bad` and
    `good` are the sides of the change as known so far. `wanted` are the positions to run next, in this order (empty in
    CUTS: any cut of `open`). `open` are the untried positions that still matter.
    """

    stage: Stage
    bad_end: int | None = None
    good_end: int | None = None
    bad: int | None = None
    good: int | None = None
    wanted: tuple[int, ...] = ()
    open: tuple[int, ...] = ()


def survey(line: Sequence[Verdict | None], *, steps: bool) -> Survey:
    """Compute the stage from the verdicts on the line (None: untried).

    `steps`: no good end is known; look for one at distances 1, 2, 4, ... from the bad end.
    """
    testable = [d for d, verdict in enumerate(line) if verdict is not Verdict.SKIP]
    if not testable:
        return Survey(Stage.UNTESTABLE)
    bad_end, good_end = testable[0], testable[-1]
    untried = tuple(d for d in testable if line[d] is None)
    known_good = next((d for d in testable if line[d] is Verdict.GOOD), None)

    if line[bad_end] is Verdict.GOOD:
        return Survey(Stage.NO_BAD, bad_end, good_end, good=bad_end, open=untried)
    if line[bad_end] is None:
        both = not steps and known_good is None and good_end != bad_end and line[good_end] is None
        ends = (bad_end, good_end) if both else (bad_end,)
        return Survey(Stage.BAD_END, bad_end, good_end, good=known_good, wanted=ends, open=untried)

    limit = len(line) if known_good is None else known_good
    bad = max(d for d in testable if d < limit and line[d] is Verdict.BAD)
    between = tuple(d for d in untried if bad < d < limit)
    if known_good is not None:
        stage = Stage.CUTS if between else Stage.BOUNDARY
        return Survey(stage, bad_end, good_end, bad, known_good, open=between)
    if good_end == bad_end and len(line) > bad_end + 1:
        return Survey(Stage.ALONE, bad_end, good_end, bad)
    if not steps and line[good_end] is None:
        return Survey(Stage.GOOD_END, bad_end, good_end, bad, wanted=(good_end,), open=between)
    if not steps or not between:
        return Survey(Stage.NO_GOOD, bad_end, good_end, bad, open=between)
    wanted = tuple(d for d in _steps(bad_end, len(line) - 1) if d in between)
    return Survey(Stage.STEPS if wanted else Stage.CUTS, bad_end, good_end, bad, wanted=wanted, open=between)


def _steps(start: int, last: int) -> list[int]:
    """Distances 1, 2, 4, ... from the start, and the last position.

    The step after a skipped one is far from it, because untestable releases are often consecutive.
    """
    steps = []
    distance = 1
    while start + distance < last:
        steps.append(start + distance)
        distance *= 2
    return [*steps, last]


def gaps_of(positions: Iterable[int]) -> list[range]:
    """The stretches of consecutive positions, lowest first."""
    gaps: list[range] = []
    for position in sorted(positions):
        if gaps and gaps[-1].stop == position:
            gaps[-1] = range(gaps[-1].start, position + 1)
        else:
            gaps.append(range(position, position + 1))
    return gaps


def cut_gap(gap: range, points: int) -> list[int]:
    """Up to `points` positions that divide a gap into parts of equal length, as far as possible."""
    points = min(points, len(gap))
    return [gap.start + (i + 1) * (len(gap) + 1) // (points + 1) - 1 for i in range(points)]


def cut(gaps: Sequence[range], n: int) -> list[int]:
    """Up to n positions that divide the gaps evenly: n=1 the middle of the widest, n=2 its thirds, and so on.

    Of equally wide gaps, the one nearest to the centre of all untried positions comes first. The result is sorted by
    the distance from that centre.
    """
    if not gaps or n <= 0:
        return []
    centre = _centre(gaps)
    points = [0] * len(gaps)
    for _ in range(n):
        free = [i for i, gap in enumerate(gaps) if points[i] < len(gap)]
        if not free:
            break
        best = max(free, key=lambda i: (len(gaps[i]) / (points[i] + 1), -_distance(gaps[i], centre)))
        points[best] += 1
    chosen = [p for gap, k in zip(gaps, points, strict=True) for p in cut_gap(gap, k)]
    return sorted(chosen, key=lambda p: (abs(2 * p - centre), p))


def cut_around(positions: Collection[int], kept: Iterable[int], n: int) -> list[int]:
    """The `kept` ones among the positions, then points that divide the gaps between them; up to n in total."""
    staying = [p for p in kept if p in positions][:n]
    return staying + cut(gaps_of(set(positions).difference(staying)), n - len(staying))


def runs_to_close(gaps: Iterable[range]) -> int:
    """Upper bound of the runs, one at a time, until no untried position is left in the gaps.

    A run in the middle of a gap leaves at most half of it, whatever the verdict. For one gap of n positions this is
    ceil(log2(n + 1)), the lower bound for any search with n + 1 possible answers.
    """
    return sum(len(gap).bit_length() for gap in gaps)


def _centre(gaps: Sequence[range]) -> int:
    """Twice the median untried position: an integer, so that comparisons are exact."""
    positions = [p for gap in gaps for p in gap]
    return positions[(len(positions) - 1) // 2] + positions[len(positions) // 2]


def _distance(gap: range, centre: int) -> int:
    return abs(gap.start + gap.stop - 1 - centre)
