"""Selects cells by an expression of words with and, or, not and parentheses, like `-k` of pytest and nox."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.matrix.cells import Cell

_TOKEN = re.compile(r"\s*(?:([()])|([\w.=+<>~!:/@-]+))")
_OPERATORS = ("and", "or", "not")


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
    parts, position = [], 0
    text = words.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise _mistake(words)
        position = token.end()
        mark, word = token.groups()
        if word and word.lower() not in _OPERATORS:
            named[f"word{len(named)}"] = _plain(word)
            parts.append(f"word{len(named) - 1}")
        else:
            parts.append(mark or word.lower())
    try:
        return ast.parse(" ".join(parts), mode="eval").body, named
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
