"""Selects the cells to run: all, those that `-k` matches, or a pairwise covering subset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from harness.matrix.covering import Covering, pairwise
from harness.matrix.selection import selected

if TYPE_CHECKING:
    from harness.matrix.cells import Cell, Matrix


_UNCOVERED = "other cells cover its pairs of values"


@frozen
class Choice:
    """An expanded matrix, its `cells` to run, and the covering if one was asked for."""

    matrix: Matrix
    cells: tuple[Cell, ...]
    covering: Covering | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the cells to run."""
        return frozenset(cell.name for cell in self.cells)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Releases that can't be tried and cells that the covering omits, each with its reason."""
        releases = [(f"{row.project} {row.version}", row.reason) for row in self.matrix.left_out]
        uncovered = self.covering.left_out if self.covering is not None else ()
        return (*releases, *((cell.name, _UNCOVERED) for cell in uncovered))

    def as_json(self) -> dict[str, Any]:
        """Return what `--list --json` prints."""
        uncovered = self.covering.left_out if self.covering is not None else ()
        return {
            "matrix": self.matrix.name,
            "cells": [
                {
                    "name": cell.name,
                    "label": cell.label,
                    "arguments": list(cell.arguments),
                    "tags": list(cell.tags),
                    "python": cell.python,
                }
                for cell in self.cells
            ],
            "left_out": [
                *(
                    {"project": row.project, "version": row.version, "reason": row.reason}
                    for row in self.matrix.left_out
                ),
                *({"cell": cell.name, "reason": _UNCOVERED} for cell in uncovered),
            ],
        }


def choose(matrix: Matrix, words: str | None = None, cover: str | None = None) -> Choice:
    """Select the cells that match `words` (None: all), reduced to a covering subset if `cover` is not None.

    Raises `UserMistake` and `BadMatrix`.
    """
    cells = selected(matrix.cells, words) if words is not None else matrix.cells
    if cover is None:
        return Choice(matrix, cells)
    covering = pairwise(cells)
    return Choice(matrix, covering.cells, covering)
