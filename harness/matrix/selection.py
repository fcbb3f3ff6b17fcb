"""Which cells are meant: words joined by and, or, not and parentheses, as pytest and nox take them by `-k`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.matrix.cells import Cell

_TOKEN = re.compile(r"\s*(?:([()])|([\w.=+<>~!:/-]+))")
_OPERATORS = ("and", "or", "not")


def selected(cells: Sequence[Cell], words: str) -> tuple[Cell, ...]:
    """The cells that `words` means, in their order.

    A word means the cells of which a tag or the name has it in it; case does not count, nor does it whether a mark
    is written as it is or as _ ("4.53.0" is "4_53_0"). Raises `UserMistake` if the words make no expression, or
    mean no cell.
    """
    expression, named = _parsed(words)
    chosen = tuple(cell for cell in cells if _holds(expression, _meant(cell, named)))
    if not chosen:
        tags = list(dict.fromkeys(tag for cell in cells for tag in cell.tags))
        few = ", ".join(tags[:12]) + (" ..." if len(tags) > 12 else "")
        raise UserMistake(f"-k {words!r} means none of the {len(cells)} cells", hint=f"there are: {few}")
    return chosen


def _parsed(words: str) -> tuple[ast.expr, dict[str, str]]:
    """The expression with a stand-in for each word, and what the stand-ins mean.

    Python's own parser knows the rest; a word such as 4_53_0 would be a number to it.
    """
    named: dict[str, str] = {}
    told, position = [], 0
    text = words.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise _mistake(words)
        position = token.end()
        mark, word = token.groups()
        if word and word.lower() not in _OPERATORS:
            named[f"word{len(named)}"] = _plain(word)
            told.append(f"word{len(named) - 1}")
        else:
            told.append(mark or word.lower())
    try:
        return ast.parse(" ".join(told), mode="eval").body, named
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
        case _:  # a word right before parentheses reads as a call
            raise _mistake(ast.unparse(expression))


def _meant(cell: Cell, named: Mapping[str, str]) -> dict[str, bool]:
    texts = [_plain(text) for text in (*cell.tags, cell.name)]
    return {name: any(word in text for text in texts) for name, word in named.items()}


def _plain(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()


def _mistake(words: str) -> UserMistake:
    return UserMistake(
        f"-k takes words joined by and, or, not and parentheses, not {words!r}",
        hint='such as -k "transformers_4_53_0 and not case_lora"',
    )
