"""The record of one night: the standing of every cell, new and changed breaks, and the cells left to run.

The archive keeps nights in `nights/` of the results folder, one JSON file per night and matrix.

`compare` says what broke since earlier nights, is still broken, was fixed, or can't be judged. Two failures are the
same break if they have the same pattern and the same culprit.
"""

from __future__ import annotations

import enum
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.matrix import Value
from harness.matrix.cells import PACKAGES
from harness.model import Change, Lock, Signature, parsed_version
from harness.model.signature import given_parts, normalized_message
from harness.store import as_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from harness.store import Store


SCHEMA = 1
FOLDER = "nights"
_RESUMED_WITHIN = timedelta(hours=24)


class CellStatus(enum.StrEnum):
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
        return self not in (CellStatus.UNJUDGED, CellStatus.LEFT)


@frozen
class CellRecord:
    """One cell at the end of a night.

    `name` and `choice` identify it; `observation` is the key of tonight's run and `good` the key of the last good run;
    `pattern` describes the failure for comparison; `broken_by` is the id of the break. A key is "" without such a run.
    """

    name: str
    choice: dict[str, Value]
    standing: CellStatus
    reason: str = ""
    observation: str = ""
    good: str = ""
    pattern: str = ""
    broken_by: str = ""


@frozen
class Fix:
    """A cell that is good again; `changed` names what changed since it was bad."""

    cell: str
    changed: str
    night: str


@frozen
class Break:
    """One failure with one culprit, in all cells that it affects.

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

    @property
    def is_open(self) -> bool:
        """Whether a cell is still broken by it."""
        return not self.closed


@frozen
class Night:
    """One night of one matrix. `start` is ISO 8601 in UTC; durations are in seconds; `ran` counts runs.

    `breaks` are the new and changed ones as they were at its end; `ended` is false while it runs, or if it was stopped.
    """

    matrix: str
    start: str
    ended: bool = False
    cells: tuple[CellRecord, ...] = ()
    breaks: tuple[Break, ...] = ()
    ran: int = 0
    wall_s: float = 0.0
    gpu_s: float = 0.0

    @property
    def began(self) -> datetime:
        """The start as a `datetime`."""
        return datetime.fromisoformat(self.start)

    @property
    def left(self) -> tuple[str, ...]:
        """The cells that the next night runs first: those that wait for their cause, then those that did not run."""
        waiting = (cell for cell in self.cells if cell.standing in (CellStatus.TURNED, CellStatus.LEFT))
        return tuple(cell.name for cell in sorted(waiting, key=lambda cell: cell.standing is CellStatus.LEFT))


@frozen
class Past:
    """What earlier nights found: each cell as the last night that judged it recorded it, and every break.

    `cells` belong to one matrix, `breaks` to all; `last` is the last night of the matrix, None before the first.
    """

    cells: dict[str, CellRecord] = field(factory=dict)
    breaks: dict[str, Break] = field(factory=dict)
    last: Night | None = None

    @classmethod
    def of(cls, nights: tuple[Night, ...], matrix: str) -> Past:
        """Return the past of a matrix, from all earlier nights."""
        nights = tuple(sorted(nights, key=lambda night: night.start))
        mine = [night for night in nights if night.matrix == matrix]
        return cls(
            {cell.name: cell for night in mine for cell in night.cells if cell.standing.is_judged},
            {known.id: known for night in nights for known in night.breaks},
            mine[-1] if mine else None,
        )

    @property
    def left(self) -> tuple[str, ...]:
        """The cells that the last night left."""
        return self.last.left if self.last is not None else ()

    @property
    def unjudged(self) -> dict[str, str]:
        """The cells that the last night could not judge, with the reason."""
        cells = self.last.cells if self.last is not None else ()
        return {cell.name: cell.reason for cell in cells if cell.standing is CellStatus.UNJUDGED}


@frozen
class NightArchive:
    """The nights of one results folder."""

    store: Store

    def put(self, night: Night) -> Path:
        """Write a night, replacing an earlier state of the same night; returns the path. Raises `NoSpace`."""
        name = f"{night.matrix}-{night.began.strftime('%Y-%m-%dT%H%M%SZ')}"
        return self.store.write(f"{FOLDER}/{name}.json", json.dumps(as_record(night, SCHEMA), indent=1))

    def all(self) -> tuple[Night, ...]:
        """Return every night, the newest last. Records that can't be read are skipped."""
        return tuple(sorted(self.store.records(FOLDER, Night, SCHEMA), key=lambda night: (night.start, night.matrix)))

    def before(self, start: datetime) -> tuple[Night, ...]:
        """Return the nights that began before a time."""
        return tuple(night for night in self.all() if night.began < start)

    def start_of(self, matrix: str, now: datetime) -> datetime:
        """Return when the current night began: a stopped night that began less than a day ago is resumed."""
        mine = [night for night in self.all() if night.matrix == matrix]
        if mine and not mine[-1].ended and now - mine[-1].began < _RESUMED_WITHIN:
            return mine[-1].began
        return now.astimezone(UTC).replace(microsecond=0)


@frozen
class Compared:
    """Tonight's record of a cell, and the one it was compared with: the cell's own, a sibling's, or None."""

    record: CellRecord
    baseline: CellRecord | None

    @property
    def is_fixed(self) -> bool:
        """Whether it was bad before and is good now."""
        was = self.baseline.standing if self.baseline is not None else None
        return self.record.standing is CellStatus.GOOD and was in (CellStatus.BROKEN, CellStatus.BEFORE)


def compare(seen: CellRecord, past: Mapping[str, CellRecord], tonight: Mapping[str, CellRecord]) -> Compared:
    """Compare what a cell's run shows with its baseline; `past` and `tonight` map names to judged cells.

    The standing of `seen` is the one without a baseline, and it has a pattern if the run failed. The baseline is the
    same cell in the last night that judged it, or a sibling of a cell that was never judged.
    """
    baseline = past.get(seen.name) or nearest_sibling(seen.choice, {**past, **tonight}.values())
    if baseline is None or seen.standing is CellStatus.GOOD:
        return Compared(seen, baseline)
    standing = _standing(seen, baseline)
    known = baseline.broken_by if standing is CellStatus.BROKEN else ""
    return Compared(evolve(seen, standing=standing, broken_by=known, good=baseline.good), baseline)


def nearest_sibling(choice: Mapping[str, Value], others: Iterable[CellRecord]) -> CellRecord | None:
    """Return the judged cell that differs in one package only and has its next older version, or None.

    If several axes have such a cell, a good one is preferred to a broken one.
    """
    older = [(axis, theirs, other) for axis, mine, theirs, other in _siblings(choice, others) if theirs < mine]
    nearest = {axis: other for axis, _, other in sorted(older, key=lambda row: row[:2]) if other.standing.is_judged}
    found = list(nearest.values())
    return next((cell for cell in found if cell.standing is CellStatus.GOOD), found[0] if found else None)


def is_superseded(cell: CellRecord, others: Iterable[CellRecord], packages: Iterable[str]) -> bool:
    """Whether a newer release of one of these packages is good with everything else as in this cell."""
    axes = {f"{PACKAGES}{name}" for name in packages}
    return any(
        axis in axes and other.standing is CellStatus.GOOD and theirs > mine
        for axis, mine, theirs, other in _siblings(cell.choice, others)
    )


def _siblings(
    choice: Mapping[str, Value], others: Iterable[CellRecord]
) -> Iterator[tuple[str, Version, Version, CellRecord]]:
    """Yield the cells with another version of one package only: its axis, the version here and there, and the cell."""
    for other in others:
        axis = differing_axis(choice, other.choice) or ""
        mine, theirs = version_on(choice, axis), version_on(other.choice, axis)
        if mine is not None and theirs is not None:
            yield axis, mine, theirs, other


def version_on(choice: Mapping[str, Value], axis: str) -> Version | None:
    """Return a cell's version of a package, None if the value is not a version (for example, a range)."""
    return parsed_version(str(choice.get(axis, "")))


def differing_axis(one: Mapping[str, Value], other: Mapping[str, Value]) -> str | None:
    """Return the one package axis in which two cells differ, else None."""
    if one.keys() != other.keys():
        return None
    axes = [axis for axis in one if json.dumps(one[axis]) != json.dumps(other[axis])]  # since True == 1 in Python
    return axes[0] if len(axes) == 1 and axes[0].startswith(PACKAGES) else None


def pattern_of(captured: Signature | None, matched: Signature | None) -> str:
    """Describe a failure for comparison; "" if there is no signature.

    The signature that the run matched may name any part of the message, so it is used only if none could be captured
    from the run itself (for example, for a metric out of bounds).
    """
    shown = captured or matched
    if shown is None:
        return ""
    parts = given_parts(shown) or {}
    for name in ("captured", "frame"):
        parts.pop(name, None)
    if shown.exception is not None:
        parts["exception"] = shown.exception.rpartition(".")[2]
    if shown.message is not None:
        parts["message"] = normalized_message(shown.message)
    return json.dumps(parts)


def break_id(pattern: str, culprit: Iterable[Change]) -> str:
    """Return the id of a break: ten hexadecimal digits made from its pattern and culprit."""
    what = [pattern, sorted((change.name, change.after) for change in culprit)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]


def came_between(culprit: Iterable[Change], older: Lock, newer: Lock) -> bool:
    """Whether every package of a culprit changed across its breaking version between two locks."""
    changes = tuple(culprit)
    return bool(changes) and all(
        _stepped(change, older.version_of(change.name), newer.version_of(change.name)) for change in changes
    )


def _standing(seen: CellRecord, baseline: CellRecord) -> CellStatus:
    if not seen.pattern:  # nothing that failed
        return CellStatus.UNJUDGED
    match baseline.standing:
        case CellStatus.GOOD | CellStatus.TURNED:
            return CellStatus.TURNED
        case CellStatus.FLAKY:
            return CellStatus.FLAKY if seen.observation == baseline.observation else CellStatus.TURNED
        case was if seen.pattern == baseline.pattern:
            return CellStatus.BROKEN if was is CellStatus.BROKEN else CellStatus.BEFORE
        case _:
            return CellStatus.UNJUDGED


def _stepped(change: Change, was: str | None, now: str | None) -> bool:
    if was == now:
        return False
    versions = [parsed_version(text) for text in (change.before, change.after, was, now)]
    before, after, here, there = versions
    if before is None or after is None or here is None or there is None:
        return (was, now) == (change.before, change.after)
    return here < after <= there if before < after else there <= after < here
