"""Which positions a plain bisection runs next: the ends, steps back to a good one, then cuts. Pure functions.

It runs the bad end before the good one, and moves an end that can't be tested. All follows from the verdicts, so these
may arrive in any order and come from earlier runs.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from harness.model.verdict import Verdict


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


_AHEAD = 3  # positions that divide the gap beside a skipped one into quarters, the middle first

_ENDED = frozenset({Stage.BOUNDARY, Stage.NO_BAD, Stage.NO_GOOD, Stage.ALONE, Stage.UNTESTABLE})


@frozen
class Survey:
    """The stage of a bisection; all numbers are positions on the line.

    `bad_end` is the testable position nearest to 0; `good_end` is the farthest good one, or the farthest that may be
    good. Both may be untried. `bad` and
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
    good = [d for d in testable if line[d] is Verdict.GOOD]
    bad_end, good_end = testable[0], (good or testable)[-1]
    untried = tuple(d for d in testable if line[d] is None)
    known_good = good[0] if good else None

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
    if not steps and line[-1] is None:
        return Survey(Stage.GOOD_END, bad_end, good_end, bad, wanted=(good_end,), open=between)
    if not between or (not steps and line[-1] is not Verdict.SKIP):
        return Survey(Stage.NO_GOOD, bad_end, good_end, bad, open=between)
    wanted = tuple(d for d in _steps(bad_end, len(line) - 1) if steps and d in between)
    # What can't be tested draws the search back: releases far away often fail for reasons of their own.
    skipped = next((d for d in range(bad + 1, len(line)) if line[d] is Verdict.SKIP), len(line))
    wanted = wanted or tuple(cut(gaps_of(d for d in between if d < skipped), _AHEAD))
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


def cut_around(positions: Collection[int], preferred: Iterable[int], n: int) -> list[int]:
    """The `preferred` positions among these, then points that divide the gaps between them; up to n in total."""
    staying = [p for p in preferred if p in positions][:n]
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


def check_ends(count: int, good: int | None, bad: int | None, *, find_fix: bool) -> None:
    """Raise ValueError if there are no positions, or an end is out of range or on the wrong side of the other."""
    if count < 1:
        raise ValueError("a search over a line needs at least one position")
    for end in (good, bad):
        if end is not None and not 0 <= end < count:
            raise ValueError(f"position {end} is not between 0 and {count - 1}")
    if good is not None and bad is not None and (good <= bad if find_fix else good >= bad):
        raise ValueError(
            f"good {good} and bad {bad} are in the wrong order to find a {'fix' if find_fix else 'regression'}"
        )
