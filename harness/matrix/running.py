"""Runs the cells of a matrix: one probe each, repeated if a metric judges it. Cells with the same lock run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.events import Progress, Reporter, SearchBegan, run_label
from harness.model import Judgement, Observation, Signature, Verdict
from harness.model.text import counted
from harness.probing import Judge, Probe
from harness.probing.probe import known_attempts
from harness.scheduling.loop import Engine
from harness.search import ByNumber, Grid, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harness.matrix import Cell
    from harness.matrix.sessions import CellProbes
    from harness.probing.probe import Knows, Prepares
    from harness.scheduling.scheduler import Lanes
    from harness.store import Store

NOT_RUN = "not run"


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
class Standing:
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


def standings(
    cells: Sequence[Cell], runs: Iterable[CellRun], blocked: Mapping[str, str] | None = None
) -> tuple[Standing, ...]:
    """Return every cell with its run, if any; `blocked` maps cell names to why they can't run."""
    by_name = {run.cell.name: run for run in runs}
    why = blocked or {}
    return tuple(Standing(cell, by_name.get(cell.name), why.get(cell.name, "")) for cell in cells)


def known_runs(cells: Sequence[Cell], bench: CellProbes, knows: Knows, store: Store) -> Iterator[CellRun]:
    """Yield the stored runs of cells, without running or resolving anything.

    Raises `BadRepro`, `UserMistake`, and for cells with `as-of = "era"` also `UnknownProject` and `NoNetwork`.
    """
    for cell in cells:
        probe = bench.probe(cell, run=False)
        if seen := known_attempts(probe, knows):
            yield _cell_run(cell, probe, [(observation, True) for observation in seen], store)


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

        def is_enough() -> bool:
            """Hand over the cells that have ended, and ask whether to go on."""
            for position, (cell, probe) in enumerate(zip(self.cells, probes, strict=True)):
                if position not in runs and search.is_settled(position):
                    trials = sorted(trial for trial in seen if trial.position == position)
                    runs[position] = _cell_run(cell, probe, [seen[trial] for trial in trials], self.store)
                    ended(runs[position])
            return until()

        engine = Engine(
            self.prober,
            self.lanes,
            lambda trial: evolve(probes[trial.position], attempt=trial.attempt),
            lambda trial: run_label(self.cells[trial.position].label, trial.attempt),
            judged,
            self.reporter,
            progress,
        )
        engine.drive(search, until=is_enough)
        is_enough()
        return tuple(runs[position] for position in sorted(runs))


def _cell_run(cell: Cell, probe: Probe, seen: Sequence[tuple[Observation, bool]], store: Store) -> CellRun:
    """Return the result of a cell from its runs, in order, each with whether it was cached.

    A repro without a signature raises if the bug is present, so its failure becomes the signature.
    """
    observations = [observation for observation, _ in seen]
    judge = Judge(probe.repro.signature, store).or_captured(observations[0])
    judgement, shown = judge.together(observations)
    took = sum(one.duration_s + one.setup_s for one in observations if one.outcome.ran)
    return CellRun(cell, probe, shown, judgement, judge.signature, all(cached for _, cached in seen), took)
