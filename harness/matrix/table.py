"""A matrix as tables: the axis with the most values is vertical, the one with the second most horizontal.

Each combination of the other axes has a table of its own. `tables` are what every view shows, and `markdown_table`
writes them for a README.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

from harness.matrix.cells import MADE, PACKAGES, PARAMETERS, project_of, text_of
from harness.model import Verdict, parsed_version
from harness.model.text import listed, one_line, without_folders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from packaging.version import Version

    from harness.matrix import Cell, Value
    from harness.matrix.running import CellResult


ABSENT = ""  # shown if a cell has no value on an axis


def axis_name(axis: str) -> str:
    """The name of an axis without its prefix."""
    if axis.startswith(MADE):
        return f"made with {axis.removeprefix(MADE)}"
    return axis.removeprefix(PACKAGES).removeprefix(PARAMETERS)


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
    short = [", ".join(_label(axis, cell.choice[axis]) for axis in varying if axis in cell.choice) for cell in cells]
    return tuple(
        text if text and short.count(text) == 1 else cell.name for text, cell in zip(short, cells, strict=True)
    )


def _label(axis: str, value: Value) -> str:
    if axis.startswith(PARAMETERS):
        return f"{axis_name(axis)}={text_of(value)}"
    return f"{axis_name(axis)} {text_of(value)}" if axis != "repro" else text_of(value)


def _varying(cells: Sequence[Cell]) -> list[str]:
    axes = dict.fromkeys(axis for cell in cells for axis in cell.choice)
    return [axis for axis in axes if len(set(_texts(cells, axis))) > 1]


def _texts(cells: Sequence[Cell], axis: str) -> list[str]:
    return [text_of(cell.choice.get(axis, ABSENT)) for cell in cells]


def _ordered(axis: str, texts: Sequence[str]) -> list[str]:
    """The values of an axis, each once, in the order of a table."""
    values = list(dict.fromkeys(texts))
    if project_of(axis) or axis == "python":
        values.sort(key=_release_order)
    elif axis == "as-of":
        values.sort()
    return values


def _release_order(text: str) -> tuple[bool, Version | str]:
    """A sort key: releases by version, then ranges and missing values by their text."""
    version = parsed_version(text)
    return (False, version) if version is not None else (True, text)


@frozen
class MatrixTable:
    """One table of cells; its `title` has the values of the axes that are neither vertical nor horizontal.

    `down` is the vertical axis, and `is_timely` says whether its values are in the order of time. `columns` are the
    headings, or one empty text without a horizontal axis: then the rows may wrap like words. A row is a value of the
    vertical axis with its places; a place has the positions of its cells, each with what tells it from the others.
    """

    title: str
    down: str
    is_timely: bool
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[tuple[int, str], ...], ...]], ...]


def tables(cells: Sequence[Cell], shown: Collection[int] | None = None) -> tuple[MatrixTable, ...]:
    """Return the tables of cells, with all of them or those at the positions `shown`.

    Releases are in version order, dates in time order, other values as in the file.
    """
    varying = _varying(cells)
    texts = {axis: _texts(cells, axis) for axis in (*varying, "repro")}
    orders = {axis: _ordered(axis, of_axis) for axis, of_axis in texts.items()}
    longest = sorted(varying, key=lambda axis: len(orders[axis]), reverse=True) or ["repro"]
    down, across = longest[:1], longest[1:2]
    apart = [axis for axis in varying if axis not in longest[:2]]

    def values(position: int, axes: Sequence[str]) -> tuple[str, ...]:
        return tuple(texts[axis][position] for axis in axes)

    def ordered(axes: Sequence[str], positions: Collection[int]) -> list[tuple[str, ...]]:
        """The values of some axes in these cells, in the order of a table."""
        distinct = {values(position, axes) for position in positions}
        return sorted(distinct, key=lambda row: [orders[axis].index(v) for axis, v in zip(axes, row, strict=True)])

    def table(title: tuple[str, ...], inside: Sequence[int]) -> MatrixTable:
        columns = ordered(across, inside)
        places: dict[tuple[str, ...], list[int]] = {}
        for position in inside:
            places.setdefault(values(position, (*down, *across)), []).append(position)
        return MatrixTable(
            ", ".join(
                f"{axis_name(axis)} = {value}" if value else f"without {axis_name(axis)}"
                for axis, value in zip(apart, title, strict=True)
            ),
            axis_name(down[0]),
            bool(project_of(down[0])) or down[0] in ("python", "as-of"),
            tuple(f"{axis_name(across[0])}={column[0] or '-'}" if column else "" for column in columns),
            tuple(
                (row[0] or "-", tuple(_distinguished(places.get((*row, *column), []), cells) for column in columns))
                for row in ordered(down, inside)
            ),
        )

    wanted = range(len(cells)) if shown is None else sorted(shown)
    return tuple(table(title, [i for i in wanted if values(i, apart) == title]) for title in ordered(apart, wanted))


def _distinguished(place: Sequence[int], cells: Sequence[Cell]) -> tuple[tuple[int, str], ...]:
    return tuple(zip(place, differences([cells[position] for position in place]), strict=True))


def neighbours(maps: Iterable[MatrixTable]) -> dict[int, tuple[int, ...]]:
    """Map each cell to the older cells that differ only on the vertical axis (positions, the nearest last)."""
    older_of: dict[int, tuple[int, ...]] = {}
    for table in maps:
        for number in range(len(table.columns)):
            older: tuple[int, ...] = ()
            for _, places in table.rows:
                cells = [position for position, _ in places[number]]
                older_of |= dict.fromkeys(cells, older)
                older = (*older, *cells[:1])
    return older_of


_REASON, _REASONS = 120, 3  # characters of one reason, and how many of them are shown
_UNKNOWN = "?"
_OF = {Verdict.GOOD: "works", Verdict.BAD: "**fails**", Verdict.SKIP: _UNKNOWN, None: ""}


def markdown_table(results: Sequence[CellResult], names: Collection[str], command: str) -> str:
    """Return a table for each part of a matrix, and a line on where it comes from.

    `names` are those of the cells to show; `command` made it.
    """
    words = [_OF[result.verdict] for result in results]
    shown = [i for i, result in enumerate(results) if result.cell.name in names]
    lines: list[str] = []
    for table in tables([result.cell for result in results], shown):
        lines += [f"**{_plain(table.title)}**", ""] if table.title else []
        lines.append(_row(_plain(table.down), [_plain(column) or "result" for column in table.columns]))
        lines.append("|---" * (len(table.columns) + 1) + "|")
        lines += [_row(_plain(row), [_place(place, words) for place in places]) for row, places in table.rows]
        lines.append("")
    unknown = [results[i] for i in shown if words[i] == _UNKNOWN]
    if unknown:
        reasons = dict.fromkeys(one_line(without_folders(result.reason), _REASON).rstrip(".") for result in unknown)
        text = listed((f"`{reason.replace('`', chr(39))}`" for reason in reasons), _REASONS)
        lines += [f"?: it could not be judged: {text}", ""]
    lines.append(_source([results[i] for i in shown], command))
    return "\n".join(lines) + "\n"


def _row(head: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([head, *cells])} |"


def _place(place: Sequence[tuple[int, str]], words: Sequence[str]) -> str:
    texts = [f"{words[i]} ({_plain(what)})" if what else words[i] for i, what in place]
    alike = {words[i] for i, _ in place}
    return alike.pop() if len(alike) == 1 else ", ".join(texts)


def _source(results: Sequence[CellResult], command: str) -> str:
    """Return a line with the day, the Pythons and the devices of the runs, and the command."""
    runs = [result.run.observation for result in results if result.run is not None]
    days = sorted(run.started[:10] for run in runs if run.started)
    pythons = sorted({run.lock.minor for run in runs if run.lock is not None})
    devices = sorted({run.device.value for run in runs})
    parts = [f"Run until {days[-1]}"] if days else ["Not run yet"]
    parts += [f"with Python {listed(pythons)} on {listed(devices)}"] if pythons else []
    return f"{' '.join(parts)}: `{command}`"


def _plain(text: str) -> str:
    """Return a text without what Markdown takes for markup in a cell."""
    return re.sub(r"([|\\`*_<])", r"\\\1", text)
