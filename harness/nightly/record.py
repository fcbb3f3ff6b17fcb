"""The record of one night: the standing of every cell, new and changed breaks, and the cells left to run."""

from __future__ import annotations

import enum
from datetime import datetime

from attrs import field, frozen

from harness.matrix import Value
from harness.matrix.cells import label_of
from harness.model import Change
from harness.model.culprit import Commit


class Standing(enum.StrEnum):
    """How a cell stands at the end of a night."""

    GOOD = "good"
    BROKEN = "broken"  # by a known break, which has a report
    BEFORE = "broken before"  # already bad in its first run, so it is not known when it broke
    TURNED = "turned"  # good before, bad now, cause not found yet
    FLAKY = "flaky"  # bad once, and not bad when run again
    UNJUDGED = "not judged"
    LEFT = "left"  # not run: the time budget ran out

    @property
    def is_judged(self) -> bool:
        """Whether the next night can compare against it."""
        return self not in (Standing.UNJUDGED, Standing.LEFT)


@frozen
class CellRecord:
    """One cell at the end of a night.

    `name` and `choice` identify it; `observation` is the key of tonight's run and `good` the key of the last good run;
    `pattern` describes the failure for comparison; `broken_by` is the id of the break; `seconds` is how long its run
    took including set-up, `on_gpu` whether that was on a real GPU. `commits` maps each project of which the cell takes
    a commit to the full hash of tonight, `good_commits` to that of the last good run.
    A key is "" without such a run.
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
    commits: dict[str, str] = field(factory=dict)
    good_commits: dict[str, str] = field(factory=dict)

    @property
    def label(self) -> str:
        """The name with the hash of each commit, as people read it."""
        return label_of(self.name, self.choice)


@frozen
class Fix:
    """A cell that is good again: `by` names the release that fixed it, or says why that is not known."""

    cell: str
    by: str
    night: str


@frozen
class Break:
    """One failure with one culprit, in all cells that it affects; `commits` are set if the culprit is a commit.

    `id` is also the id of its report, made from `pattern` and `culprit`; `cells` are "matrix: cell". `first_seen`,
    `last_seen` (when it last reached a cell) and `closed` (empty while a cell is broken) are the starts of nights
    (ISO 8601, UTC).
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
    commits: tuple[Commit, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether a cell is still broken by it."""
        return not self.closed


@frozen
class Night:
    """One night of one matrix. `start` is ISO 8601 in UTC; durations are in seconds; `ran` counts runs.

    `breaks` are the new and changed ones as they were at its end; `left` are the cells that the next night runs first;
    `ended` is false while it runs, or if it was stopped. `commits` maps each "project revision" to its full hash
    that night.
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
    commits: dict[str, str] = field(factory=dict)

    @property
    def began(self) -> datetime:
        """The start as a `datetime`."""
        return datetime.fromisoformat(self.start)


@frozen
class Past:
    """What earlier nights found: each cell as the last night that judged it recorded it, and every break.

    `cells` belong to one matrix, `breaks` to all; `left` are the cells that the last night left; `unjudged` maps the
    cells that it could not judge to the reason; `nights` is the number of nights.
    """

    cells: dict[str, CellRecord] = field(factory=dict)
    breaks: dict[str, Break] = field(factory=dict)
    left: tuple[str, ...] = ()
    unjudged: dict[str, str] = field(factory=dict)
    nights: int = 0

    @classmethod
    def of(cls, nights: tuple[Night, ...], matrix: str) -> Past:
        """Return the past of a matrix, from all earlier nights."""
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
