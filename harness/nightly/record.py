"""What one night saw: every cell's standing at its end, the breaks that it made known or changed, and what it left."""

from __future__ import annotations

import enum
from datetime import datetime

from attrs import field, frozen

from harness.matrix import Value
from harness.model import Change


class Standing(enum.StrEnum):
    """How a cell stands at the end of a night."""

    GOOD = "good"
    BROKEN = "broken"  # by a break that has a report
    BEFORE = "broken before"  # bad when it was first seen, so nothing is known of when it broke
    TURNED = "turned"  # good before and bad now; the cause is still to be found
    FLAKY = "flaky"  # bad, and not bad when it was run again
    UNJUDGED = "not judged"
    LEFT = "left"  # not run for want of time

    @property
    def is_judged(self) -> bool:
        """Whether the next night can compare with it."""
        return self not in (Standing.UNJUDGED, Standing.LEFT)


@frozen
class CellRecord:
    """One cell at the end of a night.

    `name` and `choice` are its identity; `observation` is the key of the night's run and `good` that of the last good
    one; `pattern` says how it failed, for comparison; `broken_by` is the id of the break; `seconds` what its run took
    with its set-up, `on_gpu` whether that was on a real GPU.
    """

    name: str
    choice: dict[str, Value]
    standing: Standing
    reason: str = ""
    observation: str = ""
    good: str = ""
    pattern: str = ""
    broken_by: str = ""
    seconds: float = 0.0
    on_gpu: bool = False


@frozen
class Fix:
    """A cell that a release made good again: `by` names the release, or says why that is not known."""

    cell: str
    by: str
    night: str


@frozen
class Break:
    """One way to fail with one culprit, over all the cells that it reached.

    `id` is that of its report; `pattern` and `culprit` make it up; `cells` are "matrix: cell". `first_seen`,
    `last_seen` (it reached a cell) and `closed` (empty while a cell is broken) are starts of nights (ISO 8601, UTC).
    """

    id: str
    pattern: str
    title: str
    sentence: str
    repro: str
    cells: tuple[str, ...]
    first_seen: str
    last_seen: str
    culprit: tuple[Change, ...] = ()
    fixes: tuple[Fix, ...] = ()
    closed: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a cell is still broken by it."""
        return not self.closed


@frozen
class Night:
    """One night of one matrix. `start` is ISO 8601 in UTC; durations are in seconds; `ran` counts runs.

    `breaks` are those that are new or have changed, as they were at its end; `left` are the cells that come first in
    the next night; `ended` is false as long as it runs, or where it was stopped.
    """

    matrix: str
    start: str
    ended: bool = False
    cells: tuple[CellRecord, ...] = ()
    breaks: tuple[Break, ...] = ()
    left: tuple[str, ...] = ()
    ran: int = 0
    wall_s: float = 0.0
    gpu_s: float = 0.0

    @property
    def began(self) -> datetime:
        """The start as a time."""
        return datetime.fromisoformat(self.start)


@frozen
class Past:
    """What earlier nights know: each cell as the last night that judged it left it, and every break.

    `cells` are those of one matrix, `breaks` of all; `left` is what the last night left; `unjudged` maps the cells
    that it could not judge to the reason; `nights` is how many there were.
    """

    cells: dict[str, CellRecord] = field(factory=dict)
    breaks: dict[str, Break] = field(factory=dict)
    left: tuple[str, ...] = ()
    unjudged: dict[str, str] = field(factory=dict)
    nights: int = 0

    @classmethod
    def of(cls, nights: tuple[Night, ...], matrix: str) -> Past:
        """The past of a matrix, out of all nights before."""
        cells: dict[str, CellRecord] = {}
        breaks: dict[str, Break] = {}
        left: tuple[str, ...] = ()
        unjudged: dict[str, str] = {}
        count = 0
        for night in sorted(nights, key=lambda night: night.start):
            breaks.update((known.id, known) for known in night.breaks)
            if night.matrix == matrix:
                cells.update((cell.name, cell) for cell in night.cells if cell.standing.is_judged)
                left = night.left
                unjudged = {cell.name: cell.reason for cell in night.cells if cell.standing is Standing.UNJUDGED}
                count += 1
        return cls(cells, breaks, left, unjudged, count)
