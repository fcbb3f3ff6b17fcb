"""Runs the cells of a matrix: one probe each, repeated if a metric judges it. Cells with the same lock run once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.errors import UserMistake
from harness.events import Event, Judged, Progress, Reporter, SearchBegan
from harness.model import (
    Combination,
    Judgement,
    Mixture,
    Observation,
    Signature,
)
from harness.model.as_of import AsOf
from harness.model.words import counted
from harness.planning.pins import era_of, pinned_prereleases
from harness.planning.plan import merged_requirements
from harness.probe import Judge, Probe
from harness.request.commands import read_folder, with_folders
from harness.request.repros import find_repro
from harness.run.devices import choose_device
from harness.scheduling.loop import Engine
from harness.search import ByNumber, Grid, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.environment import Index, Interpreter
    from harness.matrix import Cell
    from harness.model.commit import PinnedCommit
    from harness.request.project import Project, Projects
    from harness.run.devices import Gpu
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.loop import Prepares
    from harness.store import Store


@frozen
class CellRun:
    """The result of one cell; `signature` is the repro's, or captured from this run.

    `observation` is its first run with the verdict of all runs together. `cached` says that the observations came from
    the store or from another cell with the same lock. `seconds` is the duration of all its runs, including set-up.
    """

    cell: Cell
    probe: Probe
    observation: Observation
    judgement: Judgement
    signature: Signature | None
    cached: bool
    seconds: float = 0.0


@frozen
class CellProbes:
    """Turns a cell into a probe, with the index, the interpreters by axis value (None: the harness's own) and the GPUs.

    `as_of` is the default date for cells (None: today's index). `projects` build commits, by the same axis values.
    """

    index: Index
    interpreters: Mapping[str | None, Interpreter]
    gpus: tuple[Gpu, ...] = ()
    as_of: datetime | None = None
    projects: Mapping[str | None, Projects] = field(factory=dict)
    _built: dict[tuple[str | None, str, str], Project | str] = field(factory=dict, init=False, eq=False, repr=False)

    def probe(self, cell: Cell) -> Probe:
        """Make the probe of one cell. Raises `BadRepro`, `UserMistake`, `UnknownProject` and `NoNetwork`."""
        repro = find_repro(cell.repro).with_params(dict(cell.params))
        built = [self.commit(cell, commit) for commit in cell.commits]
        repro = with_folders(repro, [project for project in built if not isinstance(project, str)])
        flaws = [why for why in built if isinstance(why, str)]
        device, _ = choose_device(cell.device, repro.device, self.gpus)
        requirements = merged_requirements(repro.dependencies, cell.requirements)
        return Probe(
            repro,
            Combination(
                python=self.interpreters[cell.python].version,
                requirements=requirements,
                holds=merged_requirements((), cell.hold),
                as_of=self._date(cell),
                device=device,
                prereleases=pinned_prereleases(cell.requirements),
            ),
            mixture=Mixture({}, cell.label, flaw="; ".join(flaws)) if flaws else None,
        )

    def commit(self, cell: Cell, commit: PinnedCommit) -> Project | str:
        """Build a commit; returns it with the requirements that it declares, or the reason why it can't be used."""
        key = (cell.python, commit.folder, commit.sha)
        if key not in self._built:
            try:
                self._built[key] = read_folder(
                    f"{commit.folder}@{commit.sha}", self.projects[cell.python], commit.project
                )
            except UserMistake as error:
                self._built[key] = f"commit {commit.sha[:10]} of {commit.project}: {error.message}"
        return self._built[key]

    def _date(self, cell: Cell) -> datetime | None:
        if cell.as_of is None:
            return self.as_of
        wanted = AsOf.read(cell.as_of)
        if not wanted.is_era:
            return wanted.of(None)
        days = [datetime.fromisoformat(commit.date) for commit in cell.commits]
        pinned = era_of(cell.requirements, self.index) if cell.requirements or not days else None
        return wanted.of(max([*days, *([pinned] if pinned is not None else [])], default=None))


@frozen
class CellRunner:
    """Runs cells; `store` has the logs of their runs."""

    cells: tuple[Cell, ...]
    bench: CellProbes
    prober: Prepares
    lanes: Lanes
    reporter: Reporter
    store: Store

    def run(
        self, until: Callable[[], bool] = lambda: False, ended: Callable[[CellRun], None] = lambda _: None
    ) -> tuple[CellRun, ...]:
        """Run the cells in order, and stop early when `until` returns True; `ended` is called with each finished cell.

        Returns the finished cells. Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`,
        `NoNetwork`, `NoSpace`.
        """
        probes = [self.bench.probe(cell) for cell in self.cells]
        judges = [Judge(probe.repro.signature, self.store) for probe in probes]
        seen: dict[Trial, tuple[Observation, bool]] = {}
        runs: dict[int, CellRun] = {}
        grid = Grid(len(self.cells))
        search = ByNumber(grid, lambda trial: judges[trial.position].reading(seen[trial][0]))

        def progress() -> Progress:
            return Progress(grid.states, grid.remaining(), unit="cell")

        self.reporter.report(SearchBegan(f"{counted(len(self.cells), 'cell')} to judge", progress=progress()))

        def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
            seen[trial] = (observation, cached)
            return judges[trial.position].or_captured(observation)(observation)

        def told() -> None:
            for position, (cell, probe) in enumerate(zip(self.cells, probes, strict=True)):
                if position not in runs and search.is_settled(position):
                    trials = sorted(trial for trial in seen if trial.position == position)
                    runs[position] = cell_run(cell, probe, [seen[trial] for trial in trials], self.store)
                    ended(runs[position])

        engine = Engine(
            self.prober,
            self.lanes,
            lambda trial: evolve(probes[trial.position], attempt=trial.attempt),
            lambda trial: _label(self.cells[trial.position], trial),
            judged,
            _AfterEach(self.reporter, told),
            progress,
        )
        engine.drive(search, until=until)
        return tuple(runs[position] for position in sorted(runs))


@frozen
class _AfterEach:
    """A reporter that calls `then` before it passes on the verdict on a run."""

    inner: Reporter
    then: Callable[[], None]

    def report(self, event: Event) -> None:
        if isinstance(event, Judged):
            self.then()
        self.inner.report(event)


def _label(cell: Cell, trial: Trial) -> str:
    return cell.label if trial.attempt == 0 else f"{cell.label} (run {trial.attempt + 1})"


def cell_run(cell: Cell, probe: Probe, seen: Sequence[tuple[Observation, bool]], store: Store) -> CellRun:
    """Return the result of a cell from its runs, in order, each with whether it was cached.

    A repro without a signature raises if the bug is present, so its failure becomes the signature.
    """
    observations = [observation for observation, _ in seen]
    judge = Judge(probe.repro.signature, store).or_captured(observations[0])
    judgement, shown = judge.together(observations)
    took = sum(one.duration_s + one.setup_s for one in observations if one.outcome.ran)
    return CellRun(cell, probe, shown, judgement, judge.signature, all(cached for _, cached in seen), took)
