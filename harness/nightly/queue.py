"""The order in which cells run, and an estimate of how long they take from earlier nights. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.matrix.cells import PACKAGES
from harness.nightly.comparing import version_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.matrix import Cell
    from harness.nightly.record import CellRecord, Past

_NO_VERSION = Version("0")


def in_order(cells: Iterable[Cell], past: Past) -> tuple[Cell, ...]:
    """Sort cells: those that the last night left first, those never judged last, with older releases before newer ones.

    So when a new release runs, the older release that it is compared with already has a verdict.
    """
    rank = {name: position for position, name in enumerate(past.left)}

    def key(cell: Cell) -> tuple[int, bool, tuple[Version, ...]]:
        is_new = cell.name not in past.cells
        axes = sorted(axis for axis in cell.choice if axis.startswith(PACKAGES)) if is_new else []
        return (
            rank.get(cell.name, len(rank)),
            is_new,
            tuple(version_on(cell.choice, axis) or _NO_VERSION for axis in axes),
        )

    return tuple(sorted(cells, key=key))


def estimated_s(cells: Iterable[Cell], past: Past, *, on_gpu: bool = False) -> float | None:
    """Estimate the seconds to run all cells if the store has none of them; None if no earlier night ran any.

    A cell that never ran counts as the mean of the others; `on_gpu` counts GPU time only.
    """
    known = [record for record in past.cells.values() if record.seconds > 0]
    if not known:
        return None
    mean = _counted(known, on_gpu=on_gpu)
    names = {record.name: record for record in known}
    return sum(_counted([names[cell.name]], on_gpu=on_gpu) if cell.name in names else mean for cell in cells)


def _counted(records: Iterable[CellRecord], *, on_gpu: bool) -> float:
    return fmean(record.seconds if record.on_gpu or not on_gpu else 0.0 for record in records)
