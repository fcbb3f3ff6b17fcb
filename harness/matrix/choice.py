"""Which cells of a matrix are to run: all, those of some words, a covering subset of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from harness.matrix.covering import Covering, pairwise
from harness.matrix.selection import selected

if TYPE_CHECKING:
    from harness.matrix.cells import Cell, Matrix


_UNCOVERED = "pairs of its values are in others"


@frozen
class Choice:
    """A matrix without words for releases, its `cells` that are to run, and how these cover it, if that was asked."""

    matrix: Matrix
    cells: tuple[Cell, ...]
    covering: Covering | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the cells that are to run."""
        return frozenset(cell.name for cell in self.cells)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Releases that can't be tried and cells that a covering can do without, each with its reason."""
        releases = [(f"{row.project} {row.version}", row.reason) for row in self.matrix.left_out]
        uncovered = self.covering.left_out if self.covering is not None else ()
        return (*releases, *((cell.name, _UNCOVERED) for cell in uncovered))

    def as_json(self) -> dict[str, Any]:
        """What `--list --json` prints."""
        uncovered = self.covering.left_out if self.covering is not None else ()
        return {
            "matrix": self.matrix.name,
            "cells": [
                {"name": cell.name, "arguments": list(cell.arguments), "tags": list(cell.tags), "python": cell.python}
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
    """The cells that `words` mean (None: all), of these a covering subset where `cover` is "pairs".

    Raises `UserMistake` and `BadMatrix`.
    """
    cells = selected(matrix.cells, words) if words is not None else matrix.cells
    if cover is None:
        return Choice(matrix, cells)
    covering = pairwise(cells)
    return Choice(matrix, covering.cells, covering)
