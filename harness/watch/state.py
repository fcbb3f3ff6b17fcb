"""The state of a watch: the status of each cell at the end of each night, and the causes that follow from these nights.

`nights/` of the results folder has one JSON file per night and matrix. `compare` says what broke since earlier nights,
is still broken, was fixed, or can't be judged. A cause is an answer; the state has only its id, in the cells that it
broke, and `Past` works out the rest.
"""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.matrix import Value
from harness.matrix.cells import PACKAGES
from harness.model import Change, Lock, parsed_version
from harness.records import as_record
from harness.report.archive import Archive
from harness.report.phrases import title_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from harness.store import Store


SCHEMA = 1
FOLDER = "nights"
MOST_UNJUDGED = 3  # nights in a row that may judge nothing before it is news
_RESUMED_WITHIN = timedelta(hours=24)


class CellStatus(enum.StrEnum):
    """How a cell stands at the end of a night."""

    GOOD = "good"
    BROKEN = "broken"  # by a known cause, which has a report
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
class CellState:
    """One cell at the end of a night.

    `name` and `choice` identify it; `observation` is the key of tonight's run and `good` the key of the last good run;
    `pattern` describes the failure for comparison; `broken_by` is the id of the cause. A key is "" without such a run.
    `changed` says of a cell that is good again what changed since it was bad.
    """

    name: str
    choice: dict[str, Value]
    standing: CellStatus
    reason: str = ""
    observation: str = ""
    good: str = ""
    pattern: str = ""
    broken_by: str = ""
    changed: str = ""


@frozen
class Night:
    """One night of one matrix. `start` is ISO 8601 in UTC; `ran` counts runs.

    `ended` is false while it runs, or if it was stopped.
    """

    matrix: str
    start: str
    ended: bool = False
    cells: tuple[CellState, ...] = ()
    ran: int = 0
    wall_s: float = 0.0

    @property
    def began(self) -> datetime:
        """The start as a `datetime`."""
        return datetime.fromisoformat(self.start)

    @property
    def left(self) -> tuple[str, ...]:
        """The cells that the next night runs first: those that wait for their cause, then those that did not run."""
        waiting = (cell for cell in self.cells if cell.standing in (CellStatus.TURNED, CellStatus.LEFT))
        return tuple(cell.name for cell in sorted(waiting, key=lambda cell: cell.standing is CellStatus.LEFT))

    def label(self, cell: str) -> str:
        """Return the name of a cell among those of all matrices."""
        return f"{self.matrix}: {cell}"


@frozen
class Fix:
    """A cell that is good again; `changed` names what changed since it was bad."""

    cell: str
    changed: str
    night: str


@frozen
class Cause:
    """A cause with the cells that it broke, "matrix: cell", as the nights show it.

    `title`, `sentence` and `culprit` are those of its answer. `first_seen`, `last_seen` (when it last reached a cell)
    and `closed` (empty while a cell is broken) are the starts of nights (ISO 8601, UTC).
    """

    id: str
    pattern: str
    title: str
    sentence: str
    first_seen: str
    last_seen: str
    culprit: tuple[Change, ...] = ()
    cells: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    closed: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a cell is still broken by it."""
        return not self.closed

    def reaching(self, cell: str, night: str) -> Cause:
        """Return it after it broke a cell in a night."""
        cells = self.cells if cell in self.cells else (*self.cells, cell)
        fixes = tuple(fix for fix in self.fixes if fix.cell != cell)
        return evolve(self, cells=cells, fixes=fixes, closed="", last_seen=night)


@frozen
class Past:
    """What nights found: by matrix each cell as the last night that judged it left it, and every cause.

    `last` has the last night of each matrix, `unjudged` the starts of its last nights in a row that judged no cell.
    """

    archive: Archive
    matrices: Mapping[str, Mapping[str, CellState]] = field(factory=dict)
    causes: Mapping[str, Cause] = field(factory=dict)
    last: Mapping[str, Night] = field(factory=dict)
    unjudged: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @classmethod
    def of(cls, nights: Iterable[Night], archive: Archive) -> Past:
        """Return the past after these nights."""
        return reduce(cls.after, sorted(nights, key=lambda night: night.start), cls(archive))

    def cells(self, matrix: str) -> Mapping[str, CellState]:
        """The judged cells of a matrix, by name."""
        return self.matrices.get(matrix, {})

    def left(self, matrix: str) -> tuple[str, ...]:
        """The cells that the last night of a matrix left."""
        return self.last[matrix].left if matrix in self.last else ()

    def after(self, night: Night) -> Past:
        """Return the past after one more night."""
        before, tonight = self.cells(night.matrix), _judged(night.cells)
        causes = dict(self.causes)
        for cell in night.cells:
            if cell.standing is CellStatus.BROKEN:
                self._reach(causes, night, cell, before.get(cell.name))
            elif cell.standing is CellStatus.GOOD:
                _fix(causes, night, cell, baseline_of(cell, before, tonight))
        cells = {**before, **tonight}
        for cause in list(causes.values()) if night.ended else ():
            if cause.is_open and cause.first_seen < night.start and _is_over(cause, night, cells, tonight):
                causes[cause.id] = evolve(cause, closed=night.start)
        return evolve(
            self,
            matrices={**self.matrices, night.matrix: cells},
            causes=causes,
            last={**self.last, night.matrix: night},
            unjudged={**self.unjudged, night.matrix: () if tonight else (*self._unjudged_before(night), night.start)},
        )

    def _unjudged_before(self, night: Night) -> tuple[str, ...]:
        return tuple(start for start in self.unjudged.get(night.matrix, ()) if start != night.start)

    def _reach(self, causes: dict[str, Cause], night: Night, cell: CellState, before: CellState | None) -> None:
        """Add a broken cell to its cause, unless the cause broke it in the last night, too."""
        id_, label = cell.broken_by, night.label(cell.name)
        if id_ not in causes:
            causes[id_] = self._cause(id_, cell.pattern, night.start)
        was_broken = before is not None and before.broken_by == id_
        if not (was_broken and label in causes[id_].cells):
            causes[id_] = causes[id_].reaching(label, night.start)

    def _cause(self, id_: str, pattern: str, start: str) -> Cause:
        stored = self.archive.find(id_)
        if stored is None:
            return Cause(id_, pattern, f"cause {id_}", f"Its answer, {id_}, is gone.", start, start)
        answer = stored.answer
        title = title_of(answer) if answer.culprits else f"{answer.repro} fails"
        return Cause(id_, pattern, title, answer.sentence, start, start, answer.guilty_changes)


def _fix(causes: dict[str, Cause], night: Night, cell: CellState, baseline: CellState | None) -> None:
    """Add a good cell to the fixes of the cause that broke what it is compared with."""
    cause = causes.get(baseline.broken_by) if baseline is not None else None
    label = night.label(baseline.name) if baseline is not None else ""
    if cause is not None and all(fix.cell != label for fix in cause.fixes):
        fix = Fix(label, cell.changed or "other packages", night.start)
        causes[cause.id] = evolve(cause, fixes=(*cause.fixes, fix))


def _judged(cells: Iterable[CellState]) -> dict[str, CellState]:
    return {cell.name: cell for cell in cells if cell.standing.is_judged}


def _is_over(cause: Cause, night: Night, cells: Mapping[str, CellState], tonight: Mapping[str, CellState]) -> bool:
    """Whether no cell is broken by a cause any more.

    Each cell of the night's matrix is good, no longer in it, or superseded by a good release; each of another is fixed.
    """
    prefix = night.label("")
    fixed = {fix.cell for fix in cause.fixes}
    mine = [label.removeprefix(prefix) for label in cause.cells if label.startswith(prefix)]
    if not mine or any(label not in fixed and not label.startswith(prefix) for label in cause.cells):
        return False
    present, packages = {cell.name for cell in night.cells}, [change.name for change in cause.culprit]
    return all(
        name not in present
        or (name in cells and cells[name].standing is CellStatus.GOOD)
        or (name in cells and is_superseded(cells[name], tonight.values(), packages))
        for name in mine
    )


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

    def past(self, before: datetime | None = None) -> Past:
        """Return what the nights found that began before a time (None: all)."""
        nights = (night for night in self.all() if before is None or night.began < before)
        return Past.of(nights, Archive(self.store))

    def start_of(self, matrix: str, now: datetime) -> datetime:
        """Return when the current night began: a stopped night that began less than a day ago is resumed."""
        mine = [night for night in self.all() if night.matrix == matrix]
        if mine and not mine[-1].ended and now - mine[-1].began < _RESUMED_WITHIN:
            return mine[-1].began
        return now.astimezone(UTC).replace(microsecond=0)


def baseline_of(cell: CellState, past: Mapping[str, CellState], tonight: Mapping[str, CellState]) -> CellState | None:
    """Return what a cell is compared with; `past` and `tonight` map names to judged cells.

    It is the same cell in the last night that judged it, or a sibling of a cell that was never judged. In a
    first night it is None.
    """
    if not past:
        return None
    return past.get(cell.name) or nearest_sibling(cell.choice, {**past, **tonight}.values())


def compare(cell: CellState, baseline: CellState | None) -> CellState:
    """Return how a cell stands after a run, compared with its baseline.

    The standing of `cell` is the one without a baseline, and it has a pattern if the run failed.
    """
    if baseline is None or cell.standing is CellStatus.GOOD:
        return cell
    status = _status(cell, baseline)
    broken_by = baseline.broken_by if status is CellStatus.BROKEN else ""
    return evolve(cell, standing=status, broken_by=broken_by, good=baseline.good)


def nearest_sibling(choice: Mapping[str, Value], others: Iterable[CellState]) -> CellState | None:
    """Return the judged cell that differs in one package only and has its next older version, or None.

    If several axes have such a cell, a good one is preferred to a broken one.
    """
    older = [(axis, theirs, other) for axis, mine, theirs, other in _siblings(choice, others) if theirs < mine]
    nearest = {axis: other for axis, _, other in sorted(older, key=lambda row: row[:2]) if other.standing.is_judged}
    siblings = list(nearest.values())
    return next((cell for cell in siblings if cell.standing is CellStatus.GOOD), siblings[0] if siblings else None)


def is_superseded(cell: CellState, others: Iterable[CellState], packages: Iterable[str]) -> bool:
    """Whether a newer release of one of these packages is good with everything else as in this cell."""
    axes = {f"{PACKAGES}{name}" for name in packages}
    return any(
        axis in axes and other.standing is CellStatus.GOOD and theirs > mine
        for axis, mine, theirs, other in _siblings(cell.choice, others)
    )


def _siblings(
    choice: Mapping[str, Value], others: Iterable[CellState]
) -> Iterator[tuple[str, Version, Version, CellState]]:
    """Yield the cells with another version of one package only: its axis, the version here and there, and the cell."""
    for other in others:
        axis = differing_axis(choice, other.choice) or ""
        mine, theirs = version_on(choice, axis), version_on(other.choice, axis)
        if mine is not None and theirs is not None:
            yield axis, mine, theirs, other


def version_on(choice: Mapping[str, Value], axis: str) -> Version | None:
    """Return a cell's version of a package, None if the value is not a version (for example, a range)."""
    return parsed_version(str(choice.get(axis, "")))


def differing_axis(choice: Mapping[str, Value], other: Mapping[str, Value]) -> str | None:
    """Return the one package axis in which two cells differ, else None."""
    if choice.keys() != other.keys():
        return None
    axes = [axis for axis in choice if json.dumps(choice[axis]) != json.dumps(other[axis])]  # since True == 1 in Python
    return axes[0] if len(axes) == 1 and axes[0].startswith(PACKAGES) else None


def came_between(culprit: Iterable[Change], older: Lock, newer: Lock) -> bool:
    """Whether every package of a culprit changed across its breaking version between two locks."""
    changes = tuple(culprit)
    return bool(changes) and all(
        _stepped(change, older.version_of(change.name), newer.version_of(change.name)) for change in changes
    )


def _status(cell: CellState, baseline: CellState) -> CellStatus:
    if not cell.pattern:  # nothing that failed
        return CellStatus.UNJUDGED
    match baseline.standing:
        case CellStatus.GOOD | CellStatus.TURNED:
            return CellStatus.TURNED
        case CellStatus.FLAKY:
            return CellStatus.FLAKY if cell.observation == baseline.observation else CellStatus.TURNED
        case was if cell.pattern == baseline.pattern:
            return CellStatus.BROKEN if was is CellStatus.BROKEN else CellStatus.BEFORE
        case _:
            return CellStatus.UNJUDGED


def _stepped(change: Change, was: str | None, now: str | None) -> bool:
    if was == now:
        return False
    versions = [parsed_version(text) for text in (change.before, change.after, was, now)]
    before, after, older, newer = versions
    if before is None or after is None or older is None or newer is None:
        return (was, now) == (change.before, change.after)
    return older < after <= newer if before < after else newer <= after < older
