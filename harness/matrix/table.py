"""The verdicts of a matrix as a table: one axis down the side, the others across the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.matrix.cells import PACKAGES, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.matrix.cells import Cell, Value

_UNKNOWN = "-"
_ALL = "verdict"


def verdict_table(cells: Sequence[Cell], verdicts: Mapping[str, str]) -> str:
    """Lines of text: the axis with the most values down, what else differs across; a cell never run shows "-".

    `verdicts` maps cells' names to words. Cells that share a place in the table (an include that differs only in
    what it holds) share it there too.
    """
    varying = _varying(cells)
    down = max(varying, key=lambda axis: len(_values(cells, axis)), default="repro")
    across = [axis for axis in varying if axis != down]
    places: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        column = ", ".join(_header(axis, cell.choice[axis]) for axis in across if axis in cell.choice) or _ALL
        row = str(cell.choice.get(down, _UNKNOWN))
        places.setdefault((row, column), []).append(verdicts.get(cell.name, _UNKNOWN))
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    title = down.removeprefix(PACKAGES).removeprefix(PARAMETERS)
    lines = [[title, *columns]]
    lines += [[row, *("/".join(places.get((row, column), [""])) for column in columns)] for row in rows]
    widths = [max(len(line[position]) for line in lines) for position in range(len(columns) + 1)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _varying(cells: Sequence[Cell]) -> list[str]:
    axes = dict.fromkeys(axis for cell in cells for axis in cell.choice)
    return [axis for axis in axes if len(_values(cells, axis)) > 1]


def _values(cells: Sequence[Cell], axis: str) -> set[str]:
    return {repr(cell.choice.get(axis)) for cell in cells}


def _header(axis: str, value: Value) -> str:
    name = axis.removeprefix(PACKAGES).removeprefix(PARAMETERS)
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
