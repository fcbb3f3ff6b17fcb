"""Reads a matrix file, and selects the cells to run. Each mistake is one sentence that names the file and the key."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from harness.errors import BadMatrix, UserMistake
from harness.matrix.cells import (
    MADE,
    PACKAGES,
    PARAMETERS,
    Matrix,
    Value,
    Word,
    project_of,
    selection,
    selections,
    text_of,
)
from harness.model import Device, parsed_version
from harness.model.lock import AsOf
from harness.model.table import (
    Reader,
    a_table,
    filled,
    matching,
    one_of,
    parsed,
    requirements,
    that,
    with_known,
)
from harness.model.text import counted, listed, picked
from harness.repository.declared import text_to_read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from harness.matrix.cells import Cell


def _day(value: Any, where: str) -> str:
    text = value.isoformat() if isinstance(value, date) else value
    return str(parsed(AsOf.read, "a date like 2025-06-27, era or none")(text, where))


_PLAIN: dict[str, Reader] = {
    "repro": filled,
    "python": matching(re.compile(r"\d+\.\d+(\.\d+)?"), "a Python version like 3.11 in quotes"),
    "device": one_of("auto", *Device),
    "as-of": _day,
}
_parameter = that(lambda value: isinstance(value, str | int | float | bool), "a string, a number, true or false")
_TABLES = {"packages": PACKAGES, "made": MADE, "parameters": PARAMETERS}
_AXES = (*_PLAIN, *_TABLES)


def read_matrix(path: Path) -> Matrix:
    """Read a matrix file; its stem is the matrix's name. Raises `BadMatrix`, which says what to change."""
    text = text_to_read(path, "the matrix", BadMatrix)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadMatrix(f"{path} is not valid TOML: {why}") from error
    try:
        return _matrix(document, path.stem)
    except ValueError as error:
        raise BadMatrix(f"{path}: {error}") from error


def _matrix(document: dict[str, Any], name: str) -> Matrix:
    """Return a matrix. Raises `ValueError` with a sentence that names the key."""
    with_known(document, "", ("axes", "hold", "with", "include", "exclude"))
    include = [_inclusion(entry, key) for entry, key in _entries(document, "include")]
    axes = _axes(document.get("axes", {}), "axes")
    if "repro" not in axes and not include:
        raise ValueError("axes.repro must name a repro")
    return Matrix(
        name=name,
        axes=axes,
        hold=requirements(document.get("hold", []), "hold"),
        with_=requirements(document.get("with", []), "with"),
        include=tuple(include),
        exclude=tuple(_exclusion(entry, key, axes) for entry, key in _entries(document, "exclude")),
    )


def _exclusion(entry: dict[str, Any], key: str, axes: Collection[str]) -> dict[str, tuple[Value, ...]]:
    exclusion = _axes(entry, key)
    if not exclusion:
        raise ValueError(f"{key} is empty and would leave out every cell")
    if unknown := [axis for axis in exclusion if axis not in axes]:
        raise ValueError(f"{key} names {unknown[0]}, which is not an axis of this matrix")
    for axis, value, wanted in selections(exclusion.items()):
        if wanted.word is not Word.EVERY:
            raise ValueError(f"{key}.{axis}: {value!r}: an exclude takes only versions and ranges")
    return exclusion


def _inclusion(entry: dict[str, Any], key: str) -> dict[str, Value]:
    axes = _axes(entry, key)
    if several := [axis for axis, values in axes.items() if len(values) > 1]:
        raise ValueError(f"{key}.{several[0]} must be a single value, because an include is one cell")
    for axis, value, wanted in selections(axes.items()):
        if wanted.word is not Word.LATEST or wanted.count != 1:
            raise ValueError(f"{key}.{axis}: {value!r} must be a version or latest, because an include is one cell")
    return {axis: values[0] for axis, values in axes.items()}


def _axes(table: Any, where: str) -> dict[str, tuple[Value, ...]]:
    """Axes by name in the order of the file, tables flattened ("packages.transformers")."""
    flat: dict[str, Any] = {}
    for key, value in with_known(table, where, _AXES).items():
        if key in _TABLES:
            flat |= {f"{_TABLES[key]}{name}": values for name, values in a_table(value, f"{where}.{key}").items()}
        else:
            flat[key] = value
    return {axis: _values(axis, values, f"{where}.{axis}") for axis, values in flat.items()}


def _values(axis: str, given: Any, where: str) -> tuple[Value, ...]:
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ValueError(f"{where} has no values; add one or remove the axis")
    project = project_of(axis)
    read = _release_of(project) if project else _PLAIN.get(axis, _parameter)
    checked = tuple(read(value, where) for value in values)
    if twice := [value for position, value in enumerate(checked) if repr(value) in map(repr, checked[:position])]:
        raise ValueError(f"{where} has {twice[0]!r} twice")
    return checked


def _release_of(project: str) -> Reader:
    def read(value: Any, where: str) -> Value:
        text = str(filled(value, where))
        try:
            selection(project, text)
        except ValueError as error:
            raise ValueError(f"{where}: {value!r} {error}") from error
        return text

    return read


def _entries(document: dict[str, Any], key: str) -> list[tuple[dict[str, Any], str]]:
    entries = document.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{key} must be a list of tables: [[{key}]]")
    return [(entry, f"{key} {number}") for number, entry in enumerate(entries, start=1)]


@frozen
class ChosenCells:
    """An expanded matrix, and its `cells` to run."""

    matrix: Matrix
    cells: tuple[Cell, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of the cells to run."""
        return frozenset(cell.name for cell in self.cells)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Releases that can't be tried, each with its reason."""
        return tuple((f"{row.project} {row.version}", row.reason) for row in self.matrix.left_out)

    def as_json(self) -> dict[str, Any]:
        """Return what `--list --json` prints."""
        return {
            "matrix": self.matrix.name,
            "cells": [picked(cell, "name arguments tags python") for cell in self.cells],
            "left_out": list(map(asdict, self.matrix.left_out)),
        }


def choose(matrix: Matrix, only: Iterable[str] = ()) -> ChosenCells:
    """Select the cells that have every AXIS=VALUE of `only`, in order. Raises `UserMistake` and `BadMatrix`.

    Several values with commas between them mean any of them. An axis may be named without its table.
    """
    cells = matrix.cells
    wanted = [_wanted(cells, text) for text in only]

    def is_chosen(cell: Cell) -> bool:
        return all(any(_has(cell, axis, text) for text in texts) for axis, texts in wanted)

    chosen = tuple(filter(is_chosen, cells))
    if not chosen:
        words = " and ".join(f"{axis}={','.join(texts)}" for axis, texts in wanted)
        raise UserMistake(f"--only: none of the {counted(len(cells), 'cell')} has {words}")
    return ChosenCells(matrix, chosen)


def _wanted(cells: Sequence[Cell], text: str) -> tuple[str, tuple[str, ...]]:
    """Parse a value of `--only`: the axis in full and the texts of its values. Raises `UserMistake`."""
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise UserMistake(f"--only takes AXIS=VALUE, not {text!r}", hint="for example --only packages.torch=2.8.0")
    axes = list(dict.fromkeys(axis for cell in cells for axis in cell.choice))
    named = [name] if name in axes else [axis for axis in axes if name == axis.partition(".")[2]]
    if len(named) != 1:
        why = f"has several axes named {name}" if named else f"has no axis {name}"
        raise UserMistake(f"--only {text!r}: the matrix {why}", hint=f"axes: {', '.join(named or axes)}")
    axis = named[0]
    # A text with a comma may be a single value of a parameter.
    texts = (values,) if any(_has(cell, axis, values) for cell in cells) else tuple(values.split(","))
    for value in texts:
        if not any(_has(cell, axis, value) for cell in cells):
            present = dict.fromkeys(text_of(cell.choice[axis]) for cell in cells if axis in cell.choice)
            raise UserMistake(
                f"--only {text!r}: no cell has {axis} {value!r}", hint=f"values: {listed(present, _VALUES)}"
            )
    return axis, texts


_VALUES = 40  # are named where there is no such value


def _has(cell: Cell, axis: str, text: str) -> bool:
    """Whether a cell has a value on an axis, as text; equal versions are the same value."""
    if axis not in cell.choice:
        return False
    value = cell.choice[axis]
    if project_of(axis) and (version := parsed_version(text)) is not None:
        return version == parsed_version(str(value))
    return text_of(value) == text
