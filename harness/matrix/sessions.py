"""The sessions of a matrix, one for each Python that its cells name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.interpreter import accepted_tags
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.matrix import Target, expanded
from harness.matrix.commits import CommitLookup
from harness.matrix.running import CellProbes
from harness.probe.probe import Probers
from harness.request.project import Projects
from harness.scheduling.scheduler import Lanes
from harness.session import Session, joined, local_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from harness.environment import Index, Interpreter
    from harness.matrix import Cell, Matrix
    from harness.probe import Probe
    from harness.settings import Settings
    from harness.store import Store


@frozen
class Sessions:
    """Sessions by Python (None is the harness's own); `missing` says why a Python is not available.

    `as_of` is the default date for cells (None: today's index).
    """

    by_python: dict[str | None, Session]
    missing: dict[str | None, str]
    as_of: datetime | None = None

    @property
    def first(self) -> Session:
        """The session of the harness's own Python, or any other one if that is missing."""
        return self.by_python.get(None) or next(iter(self.by_python.values()))

    @property
    def store(self) -> Store:
        """Where observations are kept."""
        return self.first.store

    @property
    def probes(self) -> CellProbes:
        """Turns cells into probes."""
        interpreters = {python: session.interpreter for python, session in self.by_python.items()}
        projects = {python: projects_of(session) for python, session in self.by_python.items()}
        return CellProbes(self.first.index, interpreters, self.first.gpus, self.as_of, projects)

    @property
    def probers(self) -> Probers:
        """Runs probes with any of these Pythons."""
        return Probers({session.interpreter.version: session.prober for session in self.by_python.values()})

    def can_run(self, cell: Cell) -> bool:
        """Whether the cell's Python is available."""
        return cell.python not in self.missing

    def hindered(self, cells: Iterable[Cell]) -> dict[str, str]:
        """Return the reasons why cells can't run here, by cell name; cells that can run are not included."""
        return {cell.name: self.missing[cell.python] for cell in cells if not self.can_run(cell)}

    def expanded(self, matrix: Matrix) -> Matrix:
        """The matrix with its words expanded to releases. Raises `BadMatrix`, `UnknownProject`, `NoNetwork`."""
        first = self.first
        return expanded_by_index(matrix, first.index, first.interpreter, first.workspace.clones)

    def lanes(self, cells: Iterable[Cell]) -> contextlib.closing[Lanes]:
        """Return lanes for these cells: as many as the settings say (default 1).

        On a cluster the default and the maximum are its slots. Raises `NoWorkers`.
        """
        return contextlib.closing(Lanes(self._lane_count([self.probes.probe(cell) for cell in cells])))

    def _lane_count(self, probes: list[Probe]) -> int:
        asked = self.first.settings.lanes
        if self.first.remote is None:
            return asked or 1
        by_version = {session.interpreter.version: session for session in self.by_python.values()}
        kinds = {(probe.combination.python, probe.combination.device) for probe in probes}
        room = sum(by_version[python].lane_count(device) for python, device in kinds) or 1
        return min(asked or room, room)


def projects_of(session: Session) -> Projects:
    """Return what builds commits for a session's interpreter."""
    return Projects(session.workspace, session.local.builder.uv, session.interpreter)


def expanded_by_index(matrix: Matrix, index: Index, interpreter: Interpreter, clones: Path) -> Matrix:
    """Expand a matrix for the Pythons that it names, or for `interpreter` if it names none.

    They need not be installed: the version decides which wheels fit. `clones` keeps repositories.
    Raises `BadMatrix`, `BadRepository`, `UnknownProject` and `NoNetwork`.
    """
    named = [
        *matrix.axes.get("python", ()),
        *(one.choice["python"] for one in matrix.include if "python" in one.choice),
    ]
    targets = [Target(str(python), frozenset(accepted_tags(str(python)))) for python in dict.fromkeys(named)]
    if "python" not in matrix.axes:
        targets.append(Target(interpreter.version, frozenset(interpreter.wheel_tags())))
    return expanded(matrix, index.releases, targets, CommitLookup(matrix.repositories, clones).find)


def pythons_of(matrix: Matrix) -> tuple[str | None, ...]:
    """The Pythons of a matrix's cells; None is the harness's own."""
    named = [*matrix.axes.get("python", (None,)), *(one.choice.get("python") for one in matrix.include)]
    return tuple(dict.fromkeys(None if python is None else str(python) for python in named))


@contextlib.contextmanager
def open_sessions(
    settings: Settings,
    pythons: Iterable[str | None],
    reporter: Reporter = SILENT,
    *,
    as_of: datetime | None = None,
) -> Iterator[Sessions]:
    """Open a session for each Python (None: the harness's own), on this machine or on the cluster of the settings.

    Raises `NoWorkers`, and `UserMistake` if none of the Pythons is available.
    """
    found: dict[str | None, Session] = {}
    missing: dict[str | None, str] = {}
    mistake: UserMistake | None = None
    for python in dict.fromkeys(pythons):
        try:
            found[python] = local_session(evolve(settings, python=python), reporter)
        except UserMistake as error:
            missing[python], mistake = error.message, error
    if not found:
        raise mistake if mistake is not None else UserMistake("there are no cells to run")
    with contextlib.ExitStack() as stack:
        yield Sessions(
            {python: stack.enter_context(joined(session)) for python, session in found.items()}, missing, as_of
        )
