"""The stage of a bisection, computed from the verdicts alone.

The line runs from the bad end (0) to the good end (its last position): back in time for a regression, forward for a
fix. So one algorithm serves both. The result is the change nearest to the bad end: if the verdicts are not monotone,
this change explains why that end is bad.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence


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
