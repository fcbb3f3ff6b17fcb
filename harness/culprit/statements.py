"""Finds runs of lines that a mixture must not split: the smallest parts of statements that stay valid alone. Pure.

A parameter, an element of a list or a name in an import can change without the others in its statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Lines = tuple[int, int]  # first and last, counted from 1

_Display = ast.List | ast.Tuple | ast.Set


def header_lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Lines]:
    """The runs of lines that must not be split in the header of a class or function, decorators included."""
    for decorator in node.decorator_list:
        yield _lines(decorator)
    if isinstance(node, ast.ClassDef):
        if node.bases or node.keywords:
            yield node.lineno, max(node.lineno, node.body[0].lineno - 1)
        return
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without = [None] * (len(positional) - len(arguments.defaults))
    for one, default in (
        *zip(positional, [*without, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        *((one, None) for one in (arguments.vararg, arguments.kwarg) if one is not None),
    ):
        yield one.lineno, _last(default or one)
    if node.returns is not None:
        yield _lines(node.returns)


def statement_lines(node: ast.stmt, last: int) -> Iterator[Lines]:
    """The runs of lines that must not be split in a statement; `last` is its last line without its body."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield _lines(alias)
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and isinstance(node.value, _Display | ast.Dict):
        yield from _displayed(node.value)
    else:
        yield node.lineno, max(node.lineno, last)


def _displayed(node: ast.expr | None) -> Iterator[Lines]:
    """The lines of the elements of a list, tuple or set, nested ones included; an entry of a dict is one element."""
    if isinstance(node, _Display):
        for element in node.elts:
            yield from _displayed(element)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield (key or value).lineno, _last(value)
    elif node is not None:
        yield _lines(node)


def _lines(node: ast.expr | ast.alias) -> Lines:
    return node.lineno, _last(node)


def _last(node: ast.expr | ast.arg | ast.alias) -> int:
    return node.end_lineno or node.lineno
