"""Selects the cells to run: all, those that `-k` matches, or a pairwise covering subset.

`-k` takes words with and, or, not and parentheses, like that of pytest and nox. In a covering subset every pair of
values of any cell occurs in a kept cell, since most interaction bugs need only two values.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.matrix.cells import Cell, Matrix

_UNCOVERED = "other cells cover its pairs of values"
_WORD = re.compile(r"[\w.=+<>~!:/@-]+")
_OPERATORS = ("and", "or", "not")
_Value = tuple[str, str]
_Pair = tuple[_Value, _Value]


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
                *map(asdict, self.matrix.left_out),
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


def selected(cells: Sequence[Cell], words: str) -> tuple[Cell, ...]:
    """The cells that `words` selects, in order.

    A word matches a cell if its name or a tag contains it, ignoring case and punctuation ("4.53.0" is "4_53_0").
    Raises `UserMistake` if the words are not an expression or match no cell.
    """
    expression, named = _parsed(words)
    chosen = tuple(cell for cell in cells if _holds(expression, _meant(cell, named)))
    if not chosen:
        tags = list(dict.fromkeys(tag for cell in cells for tag in cell.tags))
        few = ", ".join(tags[:12]) + (" ..." if len(tags) > 12 else "")
        raise UserMistake(f"-k {words!r} matches none of the {len(cells)} cells", hint=f"tags: {few}")
    return chosen


def _parsed(words: str) -> tuple[ast.expr, dict[str, str]]:
    """The parsed expression with a placeholder for each word, and the words by placeholder.

    Python's parser does the rest; it would read a word like 4_53_0 as a number.
    """
    named: dict[str, str] = {}

    def placed(word: re.Match[str]) -> str:
        if word[0].lower() in _OPERATORS:
            return word[0].lower()
        named[f"word{len(named)}"] = _plain(word[0])
        return f"word{len(named) - 1}"

    text = _WORD.sub(placed, words.strip())
    try:
        return ast.parse(text, mode="eval").body, named
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _mistake(words) from error


def _holds(expression: ast.expr, meant: Mapping[str, bool]) -> bool:
    match expression:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_holds(value, meant) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_holds(value, meant) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _holds(operand, meant)
        case ast.Name(id=name):
            return meant[name]
        case _:  # a word before parentheses parses as a call
            raise _mistake(ast.unparse(expression))


def _meant(cell: Cell, named: Mapping[str, str]) -> dict[str, bool]:
    texts = [_plain(text) for text in (*cell.tags, cell.name, cell.label)]
    return {name: any(word in text for text in texts) for name, word in named.items()}


def _plain(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()


def _mistake(words: str) -> UserMistake:
    return UserMistake(
        f"-k takes an expression of words, and, or, not and parentheses, not {words!r}",
        hint='for example -k "transformers_4_53_0 and not case_lora"',
    )


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

    The cell with the most pairs that are still missing comes next, as in Cohen et al., "The AETG System" (1997).
    """
    varying = _varying(cells)
    pairs = {cell.name: _pairs(cell, varying) for cell in cells}
    kept = {cell.name for cell in cells if cell.included}
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
