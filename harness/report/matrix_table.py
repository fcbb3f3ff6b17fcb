"""A matrix as a table: the axis with the most values is vertical, the other varying axes are horizontal.

A table that is too wide becomes several. `Pivot` places the cells; `tables` are what every view shows, and
`markdown_table` writes them for a README.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.matrix.cells import MADE, PACKAGES, PARAMETERS, project_of
from harness.model import Verdict, parsed_version
from harness.model.text import listed, one_line, without_folders

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from packaging.version import Version

    from harness.matrix import Cell, Value
    from harness.matrix.running import CellResult


Choice = tuple[str, ...]

_WIDE = 10  # columns in one table
ABSENT = ""  # shown if a cell has no value on an axis


@frozen
class Pivot:
    """Cells by row and column, both in the order of their values.

    `down` and `across` are names of axes, `orders` their values as text, and `texts` the values of each cell, by its
    position. `rows` and `columns` are values (a column has one for each axis in `across`). `places` maps row and column
    to the positions of their cells: more than one if cells differ in something that is not an axis.
    """

    down: str
    across: tuple[str, ...]
    orders: Mapping[str, Sequence[str]]
    texts: Mapping[int, Mapping[str, str]]

    @cached_property
    def places(self) -> dict[tuple[str, Choice], tuple[int, ...]]:
        """The positions of the cells at each row and column."""
        found: dict[tuple[str, Choice], tuple[int, ...]] = {}
        for position, texts in self.texts.items():
            place = texts[self.down], tuple(texts[axis] for axis in self.across)
            found[place] = (*found.get(place, ()), position)
        return found

    @cached_property
    def rows(self) -> Choice:
        """The values of the vertical axis."""
        known = {row for row, _ in self.places}
        return tuple(row for row in self.orders[self.down] if row in known)

    @cached_property
    def columns(self) -> tuple[Choice, ...]:
        """The values of the horizontal axes."""

        def rank(column: Choice) -> list[int]:
            return [self.orders[axis].index(value) for axis, value in zip(self.across, column, strict=True)]

        return tuple(sorted({column for _, column in self.places}, key=rank))

    def of(self, positions: Collection[int]) -> Pivot:
        """Return the pivot with only these cells."""
        return evolve(self, texts={position: texts for position, texts in self.texts.items() if position in positions})


def pivot(cells: Sequence[Cell]) -> Pivot:
    """Pivot cells: releases in version order, dates in time order, other values as in the file."""
    varying = _varying(cells)
    down = max(varying, key=lambda axis: len(set(_texts(cells, axis))), default="repro")
    texts = {axis: _texts(cells, axis) for axis in (down, *varying)}
    return Pivot(
        down,
        tuple(axis for axis in varying if axis != down),
        {axis: _ordered(axis, found) for axis, found in texts.items()},
        {position: {axis: found[position] for axis, found in texts.items()} for position in range(len(cells))},
    )


def parts(laid: Pivot) -> list[tuple[str, Pivot]]:
    """Split a pivot with too many columns into one part for each value of an axis; returns titles and parts."""
    if len(laid.columns) <= _WIDE or len(laid.across) < 2:
        return [("", laid)]
    values = {axis: list(dict.fromkeys(one[level] for one in laid.columns)) for level, axis in enumerate(laid.across)}
    split = min((axis for axis in laid.across if len(values[axis]) > 1), key=lambda axis: len(values[axis]))
    across = tuple(axis for axis in laid.across if axis != split)
    found = []
    for value in values[split]:
        part = laid.of({position for position, texts in laid.texts.items() if texts[split] == value})
        named = f"{axis_name(split)} = {value}" if value else f"without {axis_name(split)}"
        ways = parts(evolve(part, across=across))
        found += [(f"{named}, {title}" if title else named, one) for title, one in ways]
    return found


def axis_name(axis: str) -> str:
    """The name of an axis without its prefix."""
    if axis.startswith(MADE):
        return f"made with {axis.removeprefix(MADE)}"
    return axis.removeprefix(PACKAGES).removeprefix(PARAMETERS)


def column_name(laid: Pivot, column: Choice) -> str:
    """A column as text: "python=3.11, case=lora"."""
    return ", ".join(f"{axis_name(axis)}={value}" for axis, value in zip(laid.across, column, strict=True) if value)


def differences(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Distinguish cells at one place: return the words of each command that not all of them have."""
    if len(cells) < 2:
        return ("",) * len(cells)
    common = set.intersection(*(set(cell.arguments) for cell in cells))
    return tuple(
        " ".join(word for word in cell.arguments if word not in common and not word.startswith("--")) for cell in cells
    )


def labels(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Label each cell by what varies ("transformers 4.53.0, case=lora"), or by its name if that is not unique."""
    varying = _varying(cells)
    short = [", ".join(_told(axis, cell.choice[axis]) for axis in varying if axis in cell.choice) for cell in cells]
    return tuple(
        text if text and short.count(text) == 1 else cell.name for text, cell in zip(short, cells, strict=True)
    )


def neighbours(laid: Pivot) -> dict[int, tuple[int, ...]]:
    """Map each cell to the older cells that differ only on the vertical axis (positions, the nearest last)."""
    found: dict[int, tuple[int, ...]] = {}
    for column in laid.columns:
        older: tuple[int, ...] = ()
        for row in laid.rows:
            here = laid.places.get((row, column), ())
            found |= dict.fromkeys(here, older)
            older = (*older, *here[:1])
    return found


def _told(axis: str, value: Value) -> str:
    if axis.startswith(PARAMETERS):
        return f"{axis_name(axis)}={_text(value)}"
    return f"{axis_name(axis)} {_text(value)}" if axis != "repro" else _text(value)


def _varying(cells: Sequence[Cell]) -> list[str]:
    axes = dict.fromkeys(axis for cell in cells for axis in cell.choice)
    return [axis for axis in axes if len(set(_texts(cells, axis))) > 1]


def _texts(cells: Sequence[Cell], axis: str) -> list[str]:
    return [_text(cell.choice.get(axis, ABSENT)) for cell in cells]


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(axis: str, texts: Sequence[str]) -> list[str]:
    """The values of an axis, each once, in the order of a table."""
    known = list(dict.fromkeys(texts))
    if project_of(axis) or axis == "python":
        known.sort(key=_release_order)
    elif axis == "as-of":
        known.sort()
    return known


def _release_order(text: str) -> tuple[bool, Version | str]:
    """A sort key: releases by version, then ranges and missing values by their text."""
    version = parsed_version(text)
    return (False, version) if version is not None else (True, text)


@frozen
class MatrixTable:
    """One table of cells. `heads` are its levels of headings: each an axis, and its values with how many columns each
    has; without a horizontal axis there are none, and the rows may wrap like words. `columns` are the same headings as
    one text for each column. A row is a value of the vertical axis with its places; a place has the positions of its
    cells, each with what tells it from the others there.
    """

    title: str
    down: str
    heads: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[tuple[int, str], ...], ...]], ...]


def tables(cells: Sequence[Cell], shown: Collection[int] | None = None) -> tuple[MatrixTable, ...]:
    """Return the tables of cells, with all of them or those at the positions `shown`."""
    laid = pivot(cells)
    return tuple(_table(title, part, cells) for title, part in parts(laid if shown is None else laid.of(shown)))


def _table(title: str, laid: Pivot, cells: Sequence[Cell]) -> MatrixTable:
    rows = []
    for row in laid.rows:
        places = [laid.places.get((row, column), ()) for column in laid.columns]
        apart = (zip(place, differences([cells[i] for i in place]), strict=True) for place in places)
        rows.append((row or "-", tuple(map(tuple, apart))))
    return MatrixTable(
        title,
        axis_name(laid.down),
        tuple((axis_name(axis), _level(laid.columns, level)) for level, axis in enumerate(laid.across)),
        tuple(column_name(laid, column) for column in laid.columns),
        tuple(rows),
    )


def _level(columns: Sequence[Choice], level: int) -> tuple[tuple[str, int], ...]:
    """One level of headings; equal neighbours under the same heading are merged."""
    grouped = groupby(columns, key=lambda column: column[: level + 1])
    return tuple((key[level] or "-", len(list(below))) for key, below in grouped)


_REASON, _REASONS = 120, 3  # characters of one reason, and how many of them are told
WORKS, FAILS, UNKNOWN, NOT_RUN = "works", "**fails**", "?", ""
_OF = {Verdict.GOOD: WORKS, Verdict.BAD: FAILS, Verdict.SKIP: UNKNOWN, None: NOT_RUN}


def markdown_table(
    standings: Sequence[CellResult], meant: Collection[str], command: str, elsewhere: Mapping[str, str] | None = None
) -> str:
    """Return a table for each part of a matrix, and a line on where it comes from.

    `meant` are the names of the cells to show; `command` made it. `elsewhere` maps names of cells to what is known of
    them from another place, such as the last night; it counts where a cell has no verdict of its own.
    """
    words = [_word(standing, elsewhere or {}) for standing in standings]
    shown = [i for i, standing in enumerate(standings) if standing.cell.name in meant]
    lines: list[str] = []
    for table in tables([standing.cell for standing in standings], shown):
        lines += [f"**{_plain(table.title)}**", ""] if table.title else []
        lines.append(_row(_plain(table.down), [_plain(column) or "result" for column in table.columns]))
        lines.append("|---" * (len(table.columns) + 1) + "|")
        lines += [_row(_plain(row), [_place(place, words) for place in places]) for row, places in table.rows]
        lines.append("")
    unknown = [standings[i] for i in shown if words[i] == UNKNOWN]
    if unknown:
        reasons = dict.fromkeys(one_line(without_folders(standing.reason), _REASON).rstrip(".") for standing in unknown)
        told = listed((f"`{reason.replace('`', chr(39))}`" for reason in reasons), _REASONS)
        lines += [f"?: it could not be judged: {told}", ""]
    lines.append(_source([standings[i] for i in shown], command))
    return "\n".join(lines) + "\n"


def _word(standing: CellResult, elsewhere: Mapping[str, str]) -> str:
    own = _OF[standing.verdict]
    return elsewhere.get(standing.cell.name, own) if own in (NOT_RUN, UNKNOWN) else own


def _row(head: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([head, *cells])} |"


def _place(place: Sequence[tuple[int, str]], words: Sequence[str]) -> str:
    told = [f"{words[i]} ({_plain(what)})" if what else words[i] for i, what in place]
    alike = {words[i] for i, _ in place}
    return alike.pop() if len(alike) == 1 else ", ".join(told)


def _source(standings: Sequence[CellResult], command: str) -> str:
    """Return a line with the day, the Pythons and the devices of the runs, and the command."""
    runs = [standing.run.observation for standing in standings if standing.run is not None]
    days = sorted(run.started[:10] for run in runs if run.started)
    pythons = sorted({run.lock.minor for run in runs if run.lock is not None})
    devices = sorted({run.device.value for run in runs})
    told = [f"Run until {days[-1]}"] if days else ["Not run yet"]
    told += [f"with Python {listed(pythons)} on {listed(devices)}"] if pythons else []
    return f"{' '.join(told)}: `{command}`"


def _plain(text: str) -> str:
    """Return a text without what Markdown takes for markup in a cell."""
    return re.sub(r"([|\\`*_<])", r"\\\1", text)
