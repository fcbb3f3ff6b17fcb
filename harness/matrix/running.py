"""The cells of a matrix, run: each goes the way of one probe, and those that come to the same lock run once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from attrs import frozen
from packaging.requirements import Requirement

from harness.environment.resolve import ERA_MARGIN
from harness.environment.versions import parsed_version
from harness.errors import UserMistake
from harness.events import Progress, Reporter, SearchBegan
from harness.model import (
    Combination,
    Judgement,
    Observation,
    Signature,
    normalized_name,
)
from harness.planning.plan import merged_requirements
from harness.probe import Judge, Probe
from harness.request.repros import find_repro
from harness.run.devices import choose_device
from harness.scheduling.loop import Engine
from harness.search import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
class Bench:
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
        if cell.as_of != "era":
            return datetime.fromisoformat(cell.as_of).replace(tzinfo=UTC)
        return era_of(cell.requirements, self.index)


def era_of(requirements: Sequence[str], index: Index) -> datetime | None:
    """The day of the newest release that requirements pin with ==, None where the index gives none of them a time.

    Raises `UserMistake` where nothing is pinned, `UnknownProject` and `NoNetwork`.
    """
    pinned = [(parsed.name, version) for parsed in map(Requirement, requirements) if (version := _pinned(parsed))]
    if not pinned:
        raise UserMistake(
            "as-of era needs a release to take the day from", hint="pin one, such as transformers==4.53.0"
        )
    releases = [index.release(project, version) for project, version in pinned]
    uploaded = [release.uploaded for release in releases if release is not None and release.uploaded is not None]
    return max(uploaded) + ERA_MARGIN if uploaded else None


@frozen
class Cells:
    """Cells to run, with the means to run them; `store` has what their runs printed."""

    cells: tuple[Cell, ...]
    bench: Bench
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

        count = len(self.cells)
        self.reporter.report(SearchBegan(f"{count} {'cell' if count == 1 else 'cells'} to judge", progress=progress()))

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


def _pinned(requirement: Requirement) -> str | None:
    pins = [clause.version for clause in requirement.specifier if clause.operator in ("==", "===")]
    return pins[0] if len(pins) == 1 and not pins[0].endswith(".*") else None


def pinned_prereleases(requirements: Sequence[str]) -> tuple[str, ...]:
    """Projects of which a pre-release is pinned."""
    pinned = [
        (normalized_name(parsed.name), parsed_version(_pinned(parsed))) for parsed in map(Requirement, requirements)
    ]
    return tuple(name for name, version in pinned if version is not None and version.is_prerelease)
