"""Finds the names that a Python text defines, uses on `self`, and leaves undefined. Pure.

Results are cached, because a search reads hundreds of texts, many of them more than once.
"""

from __future__ import annotations

import ast
import functools

from attrs import frozen
from pyflakes import checker, messages

from harness.culprit.lazy_annotations import has_lazy_annotations, without_lazy_annotations
from harness.culprit.syntax import parsed, walk


@frozen
class Names:
    """The names in a text.

    `defined` are classes and functions at any level, `own_attributes` the attributes of `self` or `cls` that occur.
    """

    defined: frozenset[str] = frozenset()
    own_attributes: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=4096)
def error_line(source: str) -> int | None:
    """The line of the first syntax error in a text, counted from 1; None if the text is valid Python."""
    if parsed(source) is not None:
        return None
    try:
        ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError):
        pass
    return 1


@functools.lru_cache(maxsize=4096)
def names_in(source: str) -> Names:
    """Return the names in a text; there are none if it is not valid Python."""
    tree = parsed(source)
    if tree is None:
        return Names()
    defined: set[str] = set()
    own: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            own.add(node.attr)
    return Names(frozenset(defined), frozenset(own))


@functools.lru_cache(maxsize=1024)
def undefined_in(source: str) -> frozenset[str]:
    """The names that are used but undefined according to pyflakes; empty if the text is not valid Python.

    Deferred annotations do not count as uses.
    """
    tree = parsed(source)
    if tree is None:
        return frozenset()
    try:
        # Annotations are removed in place, so that needs a tree of its own.
        found = checker.Checker(
            without_lazy_annotations(ast.parse(source)) if has_lazy_annotations(tree) else tree
        ).messages
    except RecursionError:
        return frozenset()
    return frozenset(str(message.message_args[0]) for message in found if isinstance(message, messages.UndefinedName))
