"""What the cells of a matrix are run by: one workshop for each Python that they name, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.cli.wiring import Workshop, open_workshop
from harness.errors import UserMistake
from harness.investigation.cells import Bench
from harness.investigation.expansion import expanded_by_index
from harness.probers import Probers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from harness.matrix import Matrix


@frozen
class Benches:
    """A bench and probers for all Pythons that are there; `missing` says of each other why it is not."""

    bench: Bench
    probers: Probers
    workshop: Workshop
    missing: dict[str | None, str]

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
) -> Benches:
    """Wire the parts for each Python (None: the harness's own). Raises `UserMistake` where not one of them is there."""
    workshops: dict[str | None, Workshop] = {}
    missing: dict[str | None, str] = {}
    mistake: UserMistake | None = None
    for python in dict.fromkeys(pythons):
        try:
            workshops[python] = open_workshop(
                results_folder, python=python, pass_env=pass_env, capability=capability, torch_backend=torch_backend
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
    )
