"""What the cells of a matrix are run by: one workshop for each Python that they name, joined."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.cli.lane_options import Place, open_place
from harness.cli.wiring import Workshop, open_workshop
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.matrix.expansion import expanded_by_index
from harness.matrix.running import Bench
from harness.run.lease import DEFAULT_WAIT_S
from harness.scheduling.lanes import LocalLanes
from harness.scheduling.probers import Probers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from harness.matrix import Matrix
    from harness.probe import Probe


@frozen
class Benches:
    """A bench and probers for all Pythons that are there; `missing` says of each other why it is not."""

    bench: Bench
    probers: Probers
    workshop: Workshop
    missing: dict[str | None, str]
    workshops: tuple[Workshop, ...] = ()

    def expanded(self, matrix: Matrix) -> Matrix:
        """The matrix with releases of the index for its words. Raises `BadMatrix`, `UnknownProject`, `NoNetwork`."""
        return expanded_by_index(matrix, self.bench.index, self.workshop.interpreter)


def pythons_of(matrix: Matrix) -> tuple[str | None, ...]:
    """The Pythons that cells of a matrix name; None is the harness's own."""
    named = [*matrix.axes.get("python", (None,)), *(one.choice.get("python") for one in matrix.include)]
    return tuple(dict.fromkeys(None if python is None else str(python) for python in named))


def open_benches(
    results_folder: Path,
    pythons: Iterable[str | None],
    *,
    as_of: datetime | None = None,
    pass_env: tuple[str, ...] = (),
    capability: str = "8.6",
    torch_backend: str | None = None,
    gpu_wait: float = DEFAULT_WAIT_S,
    max_disk: int | None = None,
    reporter: Reporter = SILENT,
) -> Benches:
    """Wire the parts for each Python (None: the harness's own). Raises `UserMistake` where not one of them is there."""
    workshops: dict[str | None, Workshop] = {}
    missing: dict[str | None, str] = {}
    mistake: UserMistake | None = None
    for python in dict.fromkeys(pythons):
        try:
            workshops[python] = open_workshop(
                results_folder,
                python=python,
                pass_env=pass_env,
                capability=capability,
                torch_backend=torch_backend,
                gpu_wait=gpu_wait,
                max_disk=max_disk,
                reporter=reporter,
            )
        except UserMistake as error:
            missing[python], mistake = error.message, error
    if not workshops:
        raise mistake if mistake is not None else UserMistake("there are no cells to run")
    first = workshops.get(None) or next(iter(workshops.values()))
    interpreters = {python: workshop.interpreter for python, workshop in workshops.items()}
    return Benches(
        Bench(first.index, interpreters, first.gpus, as_of),
        Probers({workshop.interpreter.version: workshop.prober for workshop in workshops.values()}),
        first,
        missing,
        tuple(workshops.values()),
    )


@frozen
class Places:
    """Where the cells of a matrix run: a place for each Python that they name."""

    by_python: dict[str, Place]

    def moved(self, benches: Benches) -> Benches:
        """The same benches, with the GPUs and the probers of these places."""
        gpus = next(iter(self.by_python.values())).gpus
        probers = Probers({python: place.prober for python, place in self.by_python.items()})
        return evolve(benches, bench=evolve(benches.bench, gpus=gpus), probers=probers)

    def open_lanes(self, probes: Iterable[Probe]) -> LocalLanes:
        """Lanes for these probes: those asked for, on a cluster at most its room. Raises `NoWorkers` without any."""
        places = tuple(self.by_python.values())
        asked = places[0].lanes
        if all(place.remote is None for place in places):
            return LocalLanes(asked or 1)
        kinds = {(probe.combination.python, probe.combination.device) for probe in probes}
        room = sum(self.by_python[python].lane_count(device) for python, device in kinds) or 1
        return LocalLanes(min(asked or room, room))


@contextlib.contextmanager
def open_places(benches: Benches, lanes: int | None, scheduler: str | None, reporter: Reporter) -> Iterator[Places]:
    """This machine, or the cluster of a scheduler, for each Python. Raises `NoWorkers` and `UserMistake`."""
    with contextlib.ExitStack() as stack:
        yield Places(
            {
                workshop.interpreter.version: stack.enter_context(open_place(workshop, lanes, scheduler, reporter))
                for workshop in benches.workshops
            }
        )
