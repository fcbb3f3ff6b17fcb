"""Parses Python texts; the last ones are cached, because one text is read for several purposes. Pure."""

from __future__ import annotations

import ast
import functools

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@functools.lru_cache(maxsize=16)
def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a text, which must not be changed; None if it is not valid Python for this interpreter."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=16)
def statements_of(source: str) -> tuple[ast.stmt, ...]:
    """Every statement of a text, at any depth; () if it is not valid Python."""
    tree = parsed(source)
    found: list[ast.stmt] = []
    left: list[ast.AST] = [tree] if tree is not None else []
    while left:
        node = left.pop()
        for name in _BODIES:
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                left += inner
                found += [one for one in inner if isinstance(one, ast.stmt)]
    return tuple(found)
