"""Reads a matrix file, and selects the cells to run. Each mistake is one sentence that names the file and the key.

`-k` takes words with and, or, not and parentheses, like that of pytest and nox.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping
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
)
from harness.model import Device, normalized_name
from harness.model.lock import AsOf
from harness.model.table import (
    Reader,
    a_table,
    each,
    filled,
    matching,
    one_of,
    parsed,
    requirements,
    that,
    with_known,
)
from harness.model.text import picked
from harness.repository.declared import text_to_read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

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
    with_known(document, "", ("axes", "hold", "with", "include", "exclude", "repositories"))
    repositories = each(filled)(document.get("repositories", {}), "repositories")
    repositories = {normalized_name(project): git for project, git in repositories.items()}
    include = [_inclusion(entry, key) for entry, key in _entries(document, "include")]
    axes = _axes(document.get("axes", {}), "axes")
    if "repro" not in axes and not include:
        raise ValueError("axes.repro must name a repro")
    _know_commits(axes, "axes", repositories)
    for number, one in enumerate(include, start=1):
        _know_commits({axis: (value,) for axis, value in one.items()}, f"include {number}", repositories)
    return Matrix(
        name=name,
        axes=axes,
        hold=requirements(document.get("hold", []), "hold"),
        with_=requirements(document.get("with", []), "with"),
        include=tuple(include),
        exclude=tuple(_exclusion(entry, key, axes) for entry, key in _entries(document, "exclude")),
        repositories=repositories,
    )


def _know_commits(axes: Mapping[str, tuple[Value, ...]], where: str, repositories: Mapping[str, str]) -> None:
    """Raise `ValueError` for a commit of a project without a repository."""
    for axis, value, wanted in selections(axes.items()):
        said = f"{where}.{axis}: {value!r} is a commit"
        if wanted.is_commit and axis.startswith(MADE):
            raise ValueError(f"{said}; files are made by releases")
        if wanted.is_commit and normalized_name(project_of(axis)) not in repositories:
            raise ValueError(f"{said}; add repositories.{project_of(axis)} with its clone or URL")


def _exclusion(entry: dict[str, Any], key: str, known: Collection[str]) -> dict[str, tuple[Value, ...]]:
    exclusion = _axes(entry, key)
    if not exclusion:
        raise ValueError(f"{key} is empty and would leave out every cell")
    if unknown := [axis for axis in exclusion if axis not in known]:
        raise ValueError(f"{key} names {unknown[0]}, which is not an axis of this matrix")
    for axis, value, wanted in selections(exclusion.items()):
        if wanted.word not in (Word.EVERY, Word.COMMIT):
            raise ValueError(f"{key}.{axis}: {value!r}: an exclude takes only versions, ranges and commits")
    return exclusion


def _inclusion(entry: dict[str, Any], key: str) -> dict[str, Value]:
    axes = _axes(entry, key)
    if several := [axis for axis, values in axes.items() if len(values) > 1]:
        raise ValueError(f"{key}.{several[0]} must be a single value, because an include is one cell")
    for axis, value, wanted in selections(axes.items()):
        if wanted.word not in (Word.LATEST, Word.COMMIT) or wanted.count != 1:
            said = f"{key}.{axis}: {value!r} must be a version, latest or a commit"
            raise ValueError(f"{said}, because an include is one cell")
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


_WORD = re.compile(r"[\w.=+<>~!:/@-]+")
_OPERATORS = ("and", "or", "not")
_ALLOWED = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Name, ast.Load)


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
            "cells": [picked(cell, "name label arguments tags python") for cell in self.cells],
            "left_out": list(map(asdict, self.matrix.left_out)),
        }


def choose(matrix: Matrix, words: str | None = None) -> ChosenCells:
    """Select the cells that match `words` (None: all). Raises `UserMistake` and `BadMatrix`."""
    return ChosenCells(matrix, selected(matrix.cells, words) if words is not None else matrix.cells)


def selected(cells: Sequence[Cell], words: str) -> tuple[Cell, ...]:
    """The cells that `words` selects, in order.

    A word matches a cell if its name or a tag contains it, ignoring case and punctuation ("4.53.0" is "4_53_0").
    Raises `UserMistake` if the words are not an expression or match no cell.
    """
    holds = _condition(words)
    chosen = tuple(cell for cell in cells if holds(cell))
    if not chosen:
        tags = list(dict.fromkeys(tag for cell in cells for tag in cell.tags))
        few = ", ".join(tags[:12]) + (" ..." if len(tags) > 12 else "")
        raise UserMistake(f"-k {words!r} matches none of the {len(cells)} cells", hint=f"tags: {few}")
    return chosen


def _condition(words: str) -> Callable[[Cell], bool]:
    """Return whether a cell is selected.

    Python evaluates the expression, with a name in place of each word: it would read a word like 4_53_0 as a number.
    """
    named: dict[str, str] = {}

    def placed(word: re.Match[str]) -> str:
        if word[0].lower() in _OPERATORS:
            return word[0].lower()
        named[f"word{len(named)}"] = _plain(word[0])
        return f"word{len(named) - 1}"

    try:
        tree = ast.parse(_WORD.sub(placed, words.strip()), mode="eval")
        is_allowed = all(isinstance(node, _ALLOWED) for node in ast.walk(tree))  # a word before parentheses is a call
        code = compile(tree, "-k", "eval") if is_allowed else None
    except (SyntaxError, RecursionError, MemoryError):
        code = None
    if code is None:
        raise UserMistake(
            f"-k takes an expression of words, and, or, not and parentheses, not {words!r}",
            hint='for example -k "transformers_4_53_0 and not case_lora"',
        )

    def holds(cell: Cell) -> bool:
        texts = [_plain(text) for text in (*cell.tags, cell.name, cell.label)]
        return bool(eval(code, {}, {name: any(word in text for text in texts) for name, word in named.items()}))  # noqa: S307

    return holds


def _plain(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()
