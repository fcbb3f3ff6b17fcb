"""The standing of a matrix: every cell with its run, or with the reason it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.matrix.running import CellRun, cell_run
from harness.model import Verdict
from harness.probe.probe import known_attempts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.matrix import Cell
    from harness.matrix.running import CellProbes
    from harness.probe.probe import Knows
    from harness.store import Store


NOT_RUN = "not run"


@frozen
class Standing:
    """One cell and its result. `run` is None if it was not run; `hindered` says why it can't run here, "" if it can."""

    cell: Cell
    run: CellRun | None = None
    hindered: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict: SKIP if the cell can't run here, None if it was not run for another reason."""
        if self.run is not None:
            return self.run.judgement.verdict
        return Verdict.SKIP if self.hindered else None

    @property
    def word(self) -> str:
        """The verdict, or "not run"."""
        return self.verdict.value if self.verdict is not None else NOT_RUN

    @property
    def reason(self) -> str:
        """The reason for the verdict."""
        return self.run.judgement.reason if self.run is not None else self.hindered


def standings(
    cells: Sequence[Cell], runs: Iterable[CellRun], hindered: Mapping[str, str] | None = None
) -> tuple[Standing, ...]:
    """Return every cell with its run, if any; `hindered` maps cell names to why they can't run."""
    by_name = {run.cell.name: run for run in runs}
    why = hindered or {}
    return tuple(Standing(cell, by_name.get(cell.name), why.get(cell.name, "")) for cell in cells)


def known_runs(cells: Sequence[Cell], bench: CellProbes, knows: Knows, store: Store) -> Iterator[CellRun]:
    """Yield the stored runs of cells, without running or resolving anything.

    Raises `BadRepro`, `UserMistake`, and for cells with `as-of = "era"` also `UnknownProject` and `NoNetwork`.
    """
    for cell in cells:
        probe = bench.probe(cell)
        if seen := known_attempts(probe, knows):
            yield cell_run(cell, probe, [(observation, True) for observation in seen], store)
