"""Pivots a matrix with pandas: the axis with the most values is vertical, the other varying axes are horizontal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.environment.versions import parsed_version
from harness.matrix.axes import PACKAGES, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pandas as pd
    from packaging.version import Version

    from harness.matrix import Cell, Value

Choice = tuple[str, ...]

_WIDE = 10  # columns in one table
ABSENT = ""  # shown if a cell has no value on an axis


@frozen
class Pivot:
    """Cells by row and column, both in the order of their values.

    `down` and `across` are names of axes; `rows` and `columns` are values as text (a column has one for each axis in
    `across`). `places` maps row and column to the positions of their cells: more than one if cells differ in something
    that is not an axis.
    """

    down: str
    across: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[Choice, ...]
    places: Mapping[tuple[str, Choice], tuple[int, ...]]

    def of(self, positions: Collection[int]) -> Pivot:
        """Return the pivot with only these cells."""
        places = {
            side: kept for side, place in self.places.items() if (kept := tuple(i for i in place if i in positions))
        }
        rows, columns = {row for row, _ in places}, {column for _, column in places}
        return evolve(
            self,
            rows=tuple(row for row in self.rows if row in rows),
            columns=tuple(column for column in self.columns if column in columns),
            places=places,
        )


def pivot(cells: Sequence[Cell]) -> Pivot:
    """Pivot cells: releases in version order, dates in time order, other values as in the file."""
    import pandas as pd  # imported here because it is slow

    varying = _varying(cells)
    down = max(varying, key=lambda axis: len(_values(cells, axis)), default="repro")
    across = [axis for axis in varying if axis != down]
    frame = pd.DataFrame({axis: _ordered(axis, _texts(cells, axis)) for axis in (down, *across)})
    frame["position"] = range(len(cells))
    if not across:
        frame[_ALONE] = ABSENT
    # Several cells can be at the same place, so each place has a tuple.
    sides = (down, across or [_ALONE])
    table = frame.pivot_table("position", *sides, aggfunc=tuple, observed=True)  # type: ignore[arg-type]
    keys: list[Choice] = [tuple(key) if len(across) > 1 else (str(key),) for key in table.columns]
    places = {
        (row, key): place
        for row, line in zip(table.index, table.itertuples(index=False, name=None), strict=True)
        for key, place in zip(keys, line, strict=True)
        if isinstance(place, tuple)
    }
    return Pivot(down, tuple(across), tuple(table.index), tuple(keys) if across else ((),), _named(places, across))


def parts(laid: Pivot) -> list[tuple[str, Pivot]]:
    """Split a pivot with too many columns into one part for each value of an axis; returns titles and parts."""
    if len(laid.columns) <= _WIDE or len(laid.across) < 2:
        return [("", laid)]
    counts = [len({column[level] for column in laid.columns}) for level in range(len(laid.across))]
    level = counts.index(min(count for count in counts if count > 1))
    found = []
    for value in dict.fromkeys(column[level] for column in laid.columns):
        kept = [column for column in laid.columns if column[level] == value]
        places = {
            (row, _without(column, level)): place for (row, column), place in laid.places.items() if column in kept
        }
        part = evolve(
            laid,
            across=_without(laid.across, level),
            columns=tuple(_without(column, level) for column in kept),
            rows=tuple(row for row in laid.rows if any((row, _without(column, level)) in places for column in kept)),
            places=places,
        )
        named = f"{axis_name(laid.across[level])} = {value}" if value else f"without {axis_name(laid.across[level])}"
        found += [(f"{named}, {title}" if title else named, one) for title, one in parts(part)]
    return found


def axis_name(axis: str) -> str:
    """The name of an axis without its prefix."""
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
    short = [", ".join(_told(axis, cell.choice[axis]) for axis in varying if axis in cell.choice) for cell in cells]
    return tuple(
        text if text and short.count(text) == 1 else cell.name for text, cell in zip(short, cells, strict=True)
    )


_ALONE = "verdict"


def _told(axis: str, value: Value) -> str:
    if axis.startswith(PARAMETERS):
        return f"{axis_name(axis)}={_text(value)}"
    return f"{axis_name(axis)} {_text(value)}" if axis != "repro" else _text(value)


def _named(
    places: dict[tuple[str, Choice], tuple[int, ...]], across: list[str]
) -> dict[tuple[str, Choice], tuple[int, ...]]:
    return places if across else {(row, ()): place for (row, _), place in places.items()}


def _varying(cells: Sequence[Cell]) -> list[str]:
    axes = dict.fromkeys(axis for cell in cells for axis in cell.choice)
    return [axis for axis in axes if len(_values(cells, axis)) > 1]


def _values(cells: Sequence[Cell], axis: str) -> set[str]:
    return set(_texts(cells, axis))


def _texts(cells: Sequence[Cell], axis: str) -> list[str]:
    return [_text(cell.choice.get(axis, ABSENT)) for cell in cells]


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(axis: str, texts: list[str]) -> pd.Categorical[Any]:
    """The values as a pandas categorical, which sets their order."""
    import pandas as pd

    known = list(dict.fromkeys(texts))
    if axis.startswith(PACKAGES) or axis == "python":
        known.sort(key=_release_order)
    elif axis == "as-of":
        known.sort()
    return pd.Categorical(texts, categories=known, ordered=True)


def _release_order(text: str) -> tuple[bool, Version | str]:
    """A sort key: releases by version, then ranges and missing values by their text."""
    version = parsed_version(text)
    return (False, version) if version is not None else (True, text)


def _without(values: Choice, level: int) -> Choice:
    return (*values[:level], *values[level + 1 :])
