"""Runs the cells of a matrix: one probe each, repeated if a metric judges it. Cells with the same lock run once.

A matrix has a session for each Python that its cells name. They turn cells into probes.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.environment.dates import era_of
from harness.environment.interpreter import target_of
from harness.errors import UserMistake
from harness.events import SILENT, Progress, Reporter, SearchBegan, run_label
from harness.matrix import Cell, Matrix, expanded
from harness.model import Device, Judgement, Observation, Signature, Verdict
from harness.model.lock import AsOf
from harness.model.text import counted
from harness.probing import Judge, Probe
from harness.probing.lanes import Engine, Lanes
from harness.probing.made import supplied_if_made
from harness.probing.probe import Probers, known_attempts
from harness.question.repros import find_repro
from harness.question.single import combination_of
from harness.run.devices import choose_device, unavailable
from harness.search import ByNumber, Grid, Trial
from harness.session import Session, joined, local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harness.model import Release
    from harness.settings import Settings
    from harness.store import Store


@frozen
class Sessions:
    """Sessions by Python (None is the harness's own), which make the probes of cells.

    `missing` says why a Python is not available; `as_of` is the default date for cells (None: today's index).
    """

    by_python: Mapping[str | None, Session]
    missing: Mapping[str | None, str] = field(factory=dict)
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
    def reporter(self) -> Reporter:
        """Where events go."""
        return self.first.reporter

    @property
    def probers(self) -> Probers:
        """Runs probes with any of these Pythons."""
        return Probers({session.interpreter.version: session.prober for session in self.by_python.values()})

    def probe(self, cell: Cell, *, run: bool = True) -> Probe:
        """Make the probe of one cell; without `run`, a first step that was not run before is not run now either.

        Raises `BadRepro`, `UserMistake`, `UnknownProject` and `NoNetwork`.
        """
        session = self.by_python[cell.python]
        repro = find_repro(cell.repro).with_params(dict(cell.params)).within(session.settings.timeout)
        device, _ = choose_device(cell.device, repro.device, session.gpus, repro.ranks)
        combination = combination_of(session, repro, cell.requirements, cell.hold, self._date(cell))
        combination = evolve(combination, device=device)
        if repro.made is not None or repro.inputs or cell.made:
            day = self.as_of.isoformat() if self.as_of is not None else None
            repro = supplied_if_made(session.local, repro, combination, cell.as_of or day, cell.made, run=run)
        return Probe(repro, combination)

    def _date(self, cell: Cell) -> datetime | None:
        if cell.as_of is None:
            return self.as_of
        wanted = AsOf.read(cell.as_of)
        if not wanted.is_era:
            return wanted.of(None)
        return wanted.of(era_of(cell.requirements, self.by_python[cell.python].index))

    def blocked(self, cells: Iterable[Cell]) -> dict[str, str]:
        """Return the reasons why cells can't run here, by cell name; cells that can run are not included."""
        reasons = {cell.name: self._missing(cell) for cell in cells}
        return {name: reason for name, reason in reasons.items() if reason}

    def _missing(self, cell: Cell) -> str:
        """Say that a cell's Python, or the GPU that it names, is not available; "" if nothing is missing."""
        if cell.python in self.missing:
            return self.missing[cell.python]
        if cell.device == Device.CUDA.value:
            return unavailable(Device.CUDA, self.by_python[cell.python].gpus) or ""
        return ""

    def runnable(self, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        """Return the cells that can run here. Raises `UserMistake` if there are none."""
        cells = tuple(cells)
        blocked = self.blocked(cells)
        if cells and len(blocked) == len(cells):
            reasons = dict.fromkeys(blocked.values())
            raise UserMistake(f"no cell can run here: {'; '.join(reasons)}")
        return tuple(cell for cell in cells if cell.name not in blocked)

    def lanes(self, cells: Iterable[Cell]) -> contextlib.closing[Lanes]:
        """Return lanes for these cells: as many as the settings say (default 1).

        On a cluster the default and the maximum are its slots. Raises `NoWorkers`.
        """
        return contextlib.closing(Lanes(self._lane_count([self.probe(cell) for cell in cells])))

    def _lane_count(self, probes: list[Probe]) -> int:
        lanes = self.first.settings.lanes
        if self.first.remote is None:
            return lanes or 1
        by_version = {session.interpreter.version: session for session in self.by_python.values()}
        kinds = {(probe.combination.python, probe.combination.device) for probe in probes}
        room = sum(by_version[python].lane_count(device) for python, device in kinds) or 1
        return min(lanes or room, room)


def expanded_by_index(matrix: Matrix, session: Session, until: datetime | None = None) -> Matrix:
    """Expand a matrix for the Pythons that it names, or for that of the session if it names none.

    They need not be installed: the version decides which wheels fit. Only releases uploaded up to `until` (None: now)
    count. Raises `BadMatrix`, `UnknownProject` and `NoNetwork`.
    """

    def releases_of(project: str) -> list[Release]:
        releases = session.index.releases(project)
        return [
            release for release in releases if until is None or release.uploaded is None or release.uploaded <= until
        ]

    targets = [target_of(python) if python is not None else session.interpreter.target for python in pythons_of(matrix)]
    return expanded(matrix, releases_of, targets)


def pythons_of(matrix: Matrix) -> tuple[str | None, ...]:
    """The Pythons of a matrix's cells; None is the harness's own."""
    axis = matrix.axes.get("python", (None,))
    of_cells = axis[0] if len(axis) == 1 else None
    named = [*axis, *(choice.get("python", of_cells) for choice in matrix.include)]
    return tuple(dict.fromkeys(None if python is None else str(python) for python in named))


@contextlib.contextmanager
def open_sessions(
    settings: Settings, pythons: Iterable[str | None], reporter: Reporter = SILENT, *, as_of: datetime | None = None
) -> Iterator[Sessions]:
    """Open a session for each Python (None: the harness's own), on this machine or on the cluster of the settings.

    Raises `NoWorkers`, and `UserMistake` if none of the Pythons is available.
    """
    by_python: dict[str | None, Session] = {}
    missing: dict[str | None, str] = {}
    mistake: UserMistake | None = None
    for python in dict.fromkeys(pythons):
        try:
            by_python[python] = local_session(evolve(settings, python=python), reporter)
        except UserMistake as error:
            missing[python], mistake = error.message, error
    if not by_python:
        raise mistake if mistake is not None else UserMistake("there are no cells to run")
    with contextlib.ExitStack() as stack:
        yield Sessions(
            {python: stack.enter_context(joined(session)) for python, session in by_python.items()}, missing, as_of
        )


NOT_RUN = "not run"


@frozen
class CellRun:
    """The result of one cell; `signature` is the repro's, or captured from this run.

    `observation` is its first run with the verdict of all runs together. `cached` says that the observations came from
    the store or from another cell with the same lock.
    """

    cell: Cell
    probe: Probe
    observation: Observation
    judgement: Judgement
    signature: Signature | None
    cached: bool


@frozen
class CellResult:
    """One cell and its result. `run` is None if it was not run; `blocked` says why it can't run here, "" if it can."""

    cell: Cell
    run: CellRun | None = None
    blocked: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict: SKIP if the cell can't run here, None if it was not run for another reason."""
        if self.run is not None:
            return self.run.judgement.verdict
        return Verdict.SKIP if self.blocked else None

    @property
    def word(self) -> str:
        """The verdict, or "not run"."""
        return self.verdict.value if self.verdict is not None else NOT_RUN

    @property
    def reason(self) -> str:
        """The reason for the verdict."""
        return self.run.judgement.reason if self.run is not None else self.blocked


def results_of(cells: Sequence[Cell], sessions: Sessions, ran: Iterable[CellRun] = ()) -> tuple[CellResult, ...]:
    """Return every cell with its run: one of those that `ran`, else from the store. Nothing is run or resolved.

    Raises `BadRepro`, `UserMistake`, and for cells with `as-of = "era"` also `UnknownProject` and `NoNetwork`.
    """
    by_name = {run.cell.name: run for run in ran}
    blocked = sessions.blocked(cells)
    return tuple(
        CellResult(cell, by_name.get(cell.name) or _known_run(cell, sessions), blocked.get(cell.name, ""))
        for cell in cells
    )


def _known_run(cell: Cell, sessions: Sessions) -> CellRun | None:
    if cell.python in sessions.missing:
        return None
    probe = sessions.probe(cell, run=False)
    attempts = [(observation, True) for observation in known_attempts(probe, sessions.probers)]
    return _cell_run(cell, probe, attempts, sessions.store) if attempts else None


def run_cells(
    cells: Sequence[Cell],
    sessions: Sessions,
    lanes: Lanes,
    until: Callable[[], bool] = lambda: False,
    ended: Callable[[CellRun], None] = lambda _: None,
) -> tuple[CellRun, ...]:
    """Run the cells in order, and stop early when `until` returns True; `ended` is called with each finished cell.

    Returns the finished cells. Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`,
    `NoNetwork`, `NoSpace`.
    """
    probes = [sessions.probe(cell) for cell in cells]
    store, reporter = sessions.store, sessions.reporter
    judges = [Judge(probe.repro.signature, store) for probe in probes]
    attempts: dict[Trial, tuple[Observation, bool]] = {}
    runs: dict[int, CellRun] = {}
    grid = Grid(len(cells))
    search = ByNumber(grid, lambda trial: judges[trial.position].reading(attempts[trial][0]))

    def progress() -> Progress:
        return Progress(grid.states, grid.remaining(), unit="cell")

    reporter.report(SearchBegan(f"{counted(len(cells), 'cell')} to judge", progress=progress()))

    def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
        attempts[trial] = (observation, cached)
        return judges[trial.position].or_captured(observation)(observation)

    def is_enough() -> bool:
        """Hand over the cells that have ended, and ask whether to go on."""
        for position, (cell, probe) in enumerate(zip(cells, probes, strict=True)):
            if position not in runs and search.is_settled(position):
                trials = sorted(trial for trial in attempts if trial.position == position)
                runs[position] = _cell_run(cell, probe, [attempts[trial] for trial in trials], store)
                ended(runs[position])
        return until()

    engine = Engine(
        sessions.probers,
        lanes,
        lambda trial: evolve(probes[trial.position], attempt=trial.attempt),
        lambda trial: run_label(cells[trial.position].name, trial.attempt),
        judged,
        reporter,
        progress,
    )
    engine.drive(search, until=is_enough)
    is_enough()
    return tuple(runs[position] for position in sorted(runs))


def _cell_run(cell: Cell, probe: Probe, attempts: Sequence[tuple[Observation, bool]], store: Store) -> CellRun:
    """Return the result of a cell from its runs, in order, each with whether it was cached.

    A repro without a signature raises if the bug is present, so its failure becomes the signature.
    """
    observations = [observation for observation, _ in attempts]
    judge = Judge(probe.repro.signature, store).or_captured(observations[0])
    judgement, shown = judge.together(observations)
    return CellRun(cell, probe, shown, judgement, judge.signature, all(cached for _, cached in attempts))
