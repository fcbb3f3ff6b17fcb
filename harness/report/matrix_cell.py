"""One cell of a matrix in its page: its verdict, how to repeat it, what was installed, and its output."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.matrix.axes import PACKAGES
from harness.model import normalized_name
from harness.model.text import listed
from harness.report.commands import asked_for
from harness.report.excerpts import in_environment, tail, trimmed_traceback
from harness.report.matrix_table import axis_name
from harness.report.phrases import device_worth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harness.matrix import Cell
    from harness.matrix.running import CellRun, Standing
    from harness.model import Lock, Observation

_SHOWN_FILES = 6
_LINE = 90
_LOG_CHARACTERS = 20_000  # per cell, because a page has hundreds


@frozen
class Panel:
    """The details of one cell; `label` distinguishes it from the others.

    `older` and `newer` are the ids of its neighbours in the heat map, "" for none.
    """

    id: str
    name: str
    label: str
    word: str
    reason: str
    facts: tuple[tuple[str, str], ...]
    command: str
    again: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    changes_title: str = ""
    changes: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    traceback: str = ""
    log: str = ""
    older: str = ""
    newer: str = ""
    took: str = ""


@frozen
class Panels:
    """Builds the panels of a matrix; `older` maps each position to the older ones to compare it with."""

    standings: Sequence[Standing]
    ids: Sequence[str]
    labels: Sequence[str]
    older: Mapping[int, tuple[int, ...]]
    log_of: Callable[[Observation], str]

    def panel(self, position: int) -> Panel:
        """The panel of one cell."""
        standing = self.standings[position]
        cell, run = standing.cell, standing.run
        older = self.older.get(position, ())
        newer = [other for other, olders in self.older.items() if olders and olders[-1] == position]
        told = Panel(
            id=self.ids[position],
            name=cell.name,
            label=self.labels[position],
            word=standing.word,
            reason=standing.reason,
            facts=(*_choice(cell), *(_facts(run) if run is not None else ())),
            command=_command(["harness", "probe", *cell.arguments, *_day(cell, run)]),
            older=self.ids[older[-1]] if older else "",
            newer=self.ids[newer[0]] if newer else "",
        )
        return told if run is None else self._with_run(told, run, older)

    def _with_run(self, panel: Panel, run: CellRun, older: tuple[int, ...]) -> Panel:
        observation = run.observation
        compared = self._compared(run, older)
        lock = observation.lock
        return evolve(
            panel,
            again=shlex.join(["harness", "probe", "--again", observation.key]) if lock else "",
            versions=_versions(run, lock),
            changes_title=f"{self.labels[compared]} ({self.standings[compared].word})" if compared is not None else "",
            changes=_changes(self.standings[compared], lock) if compared is not None else (),
            drift=observation.drift,
            took=f"{observation.duration_s:.1f} s" if observation.outcome.ran else "",
            traceback=_trace(run),
            log=_end(self.log_of(observation)),
        )

    def _compared(self, run: CellRun, older: tuple[int, ...]) -> int | None:
        """The position of the nearest older cell that has a lock, if its verdict differs."""
        for position in reversed(older):
            other = self.standings[position]
            if other.run is not None and other.run.observation.lock is not None:
                return position if other.verdict is not run.judgement.verdict else None
        return None


def _day(cell: Cell, run: CellRun | None) -> tuple[str, ...]:
    """The option for the date that applies to all cells, unless this cell has its own."""
    day = run.probe.combination.as_of if run is not None and cell.as_of is None else None
    return ("--as-of", day.isoformat()) if day is not None else ()


def _command(words: Iterable[str]) -> str:
    """A shell command; a long one has one option per line."""
    line = shlex.join(words)
    return line if len(line) <= _LINE else re.sub(r" (--[a-z-]+ )", r" \\\n    \1", line)


def _choice(cell: Cell) -> tuple[tuple[str, str], ...]:
    named = [(axis_name(axis), str(value)) for axis, value in cell.choice.items()]
    return (*named, *((("held", ", ".join(cell.hold)),) if cell.hold else ()))


def _facts(run: CellRun) -> tuple[tuple[str, str], ...]:
    observation = run.observation
    lock = observation.lock
    told = [
        ("recognised by", str(run.signature) if run.signature else ""),
        ("runs on", device_worth(observation, run.probe.repro)),
        ("interpreter", f"Python {lock.python}, {lock.platform}" if lock else ""),
        ("seen", observation.started.replace("T", " ").replace("+00:00", " UTC")),
        ("took", f"{observation.duration_s:.1f} s" if observation.outcome.ran else ""),
        ("peak memory", f"{observation.peak_memory / 2**20:.0f} MiB" if observation.peak_memory else ""),
        *((name, f"{value:g}") for name, value in observation.metrics.items()),
        ("changed in its environment", listed(map(in_environment, observation.altered), _SHOWN_FILES)),
        ("observation", observation.key),
        ("lock", f"{lock.id} ({len(lock.pins)} packages)" if lock else ""),
    ]
    return tuple((label, text) for label, text in told if text)


def _versions(run: CellRun, lock: Lock | None) -> tuple[tuple[str, str], ...]:
    """The installed versions of the packages that the axes, the repro and the holds name; the axes first."""
    if lock is None:
        return ()
    axes = _packages(run.cell)
    asked = asked_for([*run.probe.combination.requirements, *run.probe.combination.holds])
    names = [*axes, *sorted(asked - set(axes))]
    return tuple((name, version) for name in names if (version := lock.version_of(name)))


def _packages(cell: Cell) -> list[str]:
    return [normalized_name(axis.removeprefix(PACKAGES)) for axis in cell.choice if axis.startswith(PACKAGES)]


def _changes(compared: Standing, lock: Lock | None) -> tuple[str, ...]:
    before = compared.run.observation.lock if compared.run is not None else None
    return tuple(map(str, before.diff(lock))) if before is not None and lock is not None else ()


def _trace(run: CellRun) -> str:
    raised = run.observation.exception
    if raised is None:
        return ""
    names = set(_packages(run.cell)) or asked_for(run.probe.repro.dependencies)
    return trimmed_traceback(raised, names, f"{run.probe.repro.name}.py")


def _end(log: str) -> str:
    text = tail(log)
    if len(text) <= _LOG_CHARACTERS:
        return text
    return f"...\n{text[-_LOG_CHARACTERS:].partition(chr(10))[2]}"
