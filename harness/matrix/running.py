"""The cells of a matrix, run: each goes the way of one probe, and those that come to the same lock run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.events import Progress, Reporter, SearchBegan
from harness.model import (
    Combination,
    Judgement,
    Observation,
    Signature,
)
from harness.model.as_of import AsOf
from harness.model.words import counted
from harness.planning.pins import era_of, pinned_prereleases
from harness.planning.plan import merged_requirements
from harness.probe import Judge, Probe
from harness.request.repros import find_repro
from harness.run.devices import choose_device
from harness.scheduling.loop import Engine
from harness.search import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from harness.environment import Index, Interpreter
    from harness.matrix import Cell
    from harness.model import Repro
    from harness.run.devices import Gpu
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.loop import Prepares
    from harness.store import Store


@frozen
class CellRun:
    """What one cell came to; `signature` is how its bug is recognised: the repro's, or taken from this very run.

    `cached` where the store, or another cell with the same lock, had the answer.
    """

    cell: Cell
    probe: Probe
    observation: Observation
    judgement: Judgement
    signature: Signature | None
    cached: bool


@frozen
class CellProbes:
    """What turns a cell into a probe: releases by the index, interpreters by the axis (None: the harness's own), GPUs.

    `as_of` is the day of cells that name none (None: today's index).
    """

    index: Index
    interpreters: Mapping[str | None, Interpreter]
    gpus: tuple[Gpu, ...] = ()
    as_of: datetime | None = None

    def probe(self, cell: Cell) -> Probe:
        """The probe of one cell. Raises `BadRepro`, `UserMistake`, `UnknownProject` and `NoNetwork`."""
        repro = find_repro(cell.repro).with_params(dict(cell.params))
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
        )

    def _date(self, cell: Cell) -> datetime | None:
        if cell.as_of is None:
            return self.as_of
        wanted = AsOf.read(cell.as_of)
        return wanted.of(era_of(cell.requirements, self.index) if wanted.is_era else None)


@frozen
class CellRunner:
    """Cells to run, with the means to run them; `store` has what their runs printed."""

    cells: tuple[Cell, ...]
    bench: CellProbes
    prober: Prepares
    lanes: Lanes
    reporter: Reporter
    store: Store

    def run(self, until: Callable[[], bool] = lambda: False) -> tuple[CellRun, ...]:
        """Run all of them, in order, or until `until` says so (then those that ended by then).

        Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        probes = [self.bench.probe(cell) for cell in self.cells]
        runs: dict[int, CellRun] = {}
        search = Grid(len(self.cells))

        def progress() -> Progress:
            return Progress(search.states, search.remaining(), unit="cell")

        self.reporter.report(SearchBegan(f"{counted(len(self.cells), 'cell')} to judge", progress=progress()))

        def label_of(position: int) -> str:
            return self.cells[position].name

        def judged(position: int, observation: Observation, cached: bool) -> Judgement:
            repro = probes[position].repro
            signature, judgement = judge_alone(repro, observation, self.store)
            runs[position] = CellRun(self.cells[position], probes[position], observation, judgement, signature, cached)
            return judgement

        engine = Engine(self.prober, self.lanes, probes.__getitem__, label_of, judged, self.reporter, progress)
        engine.drive(search, until=until)
        return tuple(runs[position] for position in sorted(runs))


def judge_alone(repro: Repro, observation: Observation, store: Store) -> tuple[Signature | None, Judgement]:
    """The verdict on a run that nothing is compared with, and the signature behind it.

    A repro without a signature raises where its bug is there: how it failed is its signature then.
    """
    judge = Judge(repro.signature, store).or_captured(observation)
    return judge.signature, judge(observation)
