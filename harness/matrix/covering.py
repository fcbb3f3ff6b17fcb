"""A pairwise covering subset of cells: every pair of values of any cell occurs in a kept cell.

Most interaction bugs need only two values. allpairspy proposes the cells; it can stop early if cells are excluded, so
the missing pairs are added from the other cells, greedily.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.matrix.cells import Cell

_Value = tuple[str, str]
_Pair = tuple[_Value, _Value]


@frozen
class Covering:
    """The cells that are kept, in order, and those left out. The kept cells cover `covered` of `pairs` pairs of values.

    Only axes with different values count. A pair that no cell has is not in `pairs`.
    """

    cells: tuple[Cell, ...]
    left_out: tuple[Cell, ...]
    covered: int
    pairs: int

    @property
    def share(self) -> float:
        """The share of pairs that is covered, 0 to 1."""
        return self.covered / self.pairs if self.pairs else 1.0


def pairwise(cells: Sequence[Cell]) -> Covering:
    """Choose the cells to run; includes are always kept. The choice is deterministic.

    Source of the method: Czerwonka, "Pairwise Testing in the Real World" (2006).
    """
    varying = _varying(cells)
    pairs = {cell.name: _pairs(cell, varying) for cell in cells}
    kept = {cell.name for cell in cells if cell.included} | _proposed([cell for cell in cells if not cell.included])
    if len(varying) < 2:  # no pairs: every cell has its own value
        kept = set(pairs)
    wanted = set().union(*pairs.values())
    missing = wanted.difference(*(pairs[name] for name in kept))
    while missing:
        best = max(pairs, key=lambda name: len(pairs[name] & missing))
        kept.add(best)
        missing -= pairs[best]
    for name in [cell.name for cell in cells if cell.name in kept and not cell.included]:
        if len(varying) >= 2 and pairs[name] <= set().union(*(pairs[other] for other in kept - {name})):
            kept.remove(name)  # cells added later cover its pairs too
    covered = set().union(*(pairs[name] for name in kept))
    return Covering(
        cells=tuple(cell for cell in cells if cell.name in kept),
        left_out=tuple(cell for cell in cells if cell.name not in kept),
        covered=len(covered & wanted),
        pairs=len(wanted),
    )


def _varying(cells: Iterable[Cell]) -> list[str]:
    cells = tuple(cells)
    axes = dict.fromkeys(axis for cell in cells for axis in cell.choice)
    return [axis for axis in axes if len({_value(cell, axis) for cell in cells}) > 1]


def _value(cell: Cell, axis: str) -> _Value:
    """Return a cell's value on an axis. A missing axis counts as a value: the repro's default."""
    return axis, json.dumps(cell.choice.get(axis))


def _pairs(cell: Cell, varying: Iterable[str]) -> frozenset[_Pair]:
    return frozenset(itertools.combinations([_value(cell, axis) for axis in varying], 2))


def _proposed(cells: Sequence[Cell]) -> set[str]:
    """The names of the cells that allpairspy chooses from a product with possible excludes."""
    # Imported here because nox reads matrices with its own Python, which may lack it.
    from allpairspy import AllPairs  # type: ignore[import-untyped]

    varying = _varying(cells)
    if len(varying) < 2:
        return set()
    rows = {tuple(_value(cell, axis) for axis in varying): cell.name for cell in cells}
    begun = {row[:length] for row in rows for length in range(1, len(varying) + 1)}
    columns = [list(dict.fromkeys(row[position] for row in rows)) for position in range(len(varying))]
    found = AllPairs(columns, filter_func=lambda row: tuple(row) in begun)
    return {rows[tuple(row)] for row in found}
