"""The record of one night: the standing of every cell, new and changed breaks, and the cells left to run.

The archive keeps nights in `nights/` of the results folder, one JSON file per night and matrix.
"""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import cattrs
from attrs import field, frozen

from harness.matrix import Value
from harness.matrix.cells import label_of
from harness.model import Change
from harness.model.culprit import Commit
from harness.report.archive import read_records

if TYPE_CHECKING:
    from pathlib import Path

    from harness.store import Store

SCHEMA = 1
FOLDER = "nights"
_RESUMED_WITHIN = timedelta(hours=24)

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)
# A cell's value keeps the type that TOML gave it. cattrs can't tell a union of plain types apart.
_converter.register_structure_hook_func(lambda kind: kind == str | int | float | bool, lambda value, _: value)


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
    (ISO 8601, UTC). `similar` says which known regression it looks like, "" for none.
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
    similar: str = ""

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


@frozen
class NightArchive:
    """The nights of one results folder."""

    store: Store

    def put(self, night: Night) -> Path:
        """Write a night, replacing an earlier state of the same night; returns the path. Raises `NoSpace`."""
        record = {"schema": SCHEMA, **_converter.unstructure(night)}
        name = f"{night.matrix}-{night.began.strftime('%Y-%m-%dT%H%M%SZ')}"
        return self.store.write(f"{FOLDER}/{name}.json", json.dumps(record, indent=1))

    def all(self) -> tuple[Night, ...]:
        """Return every night, the newest last. Records that can't be read are skipped."""
        found = read_records(self.store, FOLDER, SCHEMA, Night, _converter)
        return tuple(sorted(found, key=lambda night: (night.start, night.matrix)))

    def before(self, start: datetime) -> tuple[Night, ...]:
        """Return the nights that began before a time."""
        return tuple(night for night in self.all() if night.began < start)

    def commits_of(self, matrix: str, start: datetime) -> dict[str, str]:
        """Return the commits that branches, tags and hashes named in a night that has begun; empty for a new one."""
        return next((night.commits for night in self.all() if night.matrix == matrix and night.began == start), {})

    def start_of(self, matrix: str, now: datetime) -> datetime:
        """Return when the current night began: a stopped night that began less than a day ago is resumed."""
        mine = [night for night in self.all() if night.matrix == matrix]
        if mine and not mine[-1].ended and now - mine[-1].began < _RESUMED_WITHIN:
            return mine[-1].began
        return now.astimezone(UTC).replace(microsecond=0)
