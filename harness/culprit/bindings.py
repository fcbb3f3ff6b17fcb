"""Finds what statements of a Python text bind, export and extend, by the rules of scopes. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from harness.culprit.facts import Function
from harness.culprit.syntax import children_of


def bound_names(body: Iterable[ast.stmt], *, deep: bool = False) -> Iterator[tuple[str, int]]:
    """The names that these statements bind in their own scope, with their lines.

    With `deep` this includes the names of walrus assignments, comprehensions and lambdas, which shadow outer ones.
    """
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef | Function):
            yield node.name, node.lineno
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno
        elif isinstance(node, ast.arg) and deep:
            yield node.arg, node.lineno
        if deep or not isinstance(node, ast.expr) or isinstance(node, ast.Tuple | ast.List | ast.Starred):
            waiting += children_of(node)


def exported_names(node: ast.stmt) -> Iterator[tuple[str, int]]:
    """The names that a statement adds to `__all__`, with their lines: a star import needs each of them."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
        return
    if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
        for one in ast.walk(node.value):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value, one.lineno


def own_nodes(node: Function) -> Iterator[ast.AST]:
    """The nodes in the body of a function, without the bodies of nested functions, lambdas and classes."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, ast.ClassDef | Function | ast.Lambda):
            waiting += children_of(one)


def extends_property(node: Function) -> bool:
    """Whether a method extends one of the same name above it: `@size.setter`."""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == node.name
        for one in node.decorator_list
    )
