"""Handles annotations that are not evaluated because of `from __future__ import annotations` (PEP 563). Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

LAZY = "annotations"  # the name that the import binds


def has_lazy_annotations(tree: ast.Module) -> bool:
    """Whether a module defers the evaluation of its annotations."""
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and LAZY in {one.name for one in node.names}
        for node in tree.body
    )


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """The annotations in the header of a function."""
    for one in _parameters(node):
        if one.annotation is not None:
            yield one.annotation
    if node.returns is not None:
        yield node.returns


def evaluated_at_definition(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The parts of a definition that are evaluated if annotations are deferred.

    For a function these are decorators and defaults; for a class all child nodes, its body included.
    """
    if isinstance(node, ast.ClassDef):
        yield from ast.iter_child_nodes(node)
        return
    yield from node.decorator_list
    yield from node.args.defaults
    yield from (one for one in node.args.kw_defaults if one is not None)


def without_lazy_annotations(tree: ast.Module) -> ast.Module:
    """Remove deferred annotations of parameters and return values from a module, in place, and return it.

    A module that does not defer annotations is not changed.
    """
    if has_lazy_annotations(tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.returns = None
                for one in _parameters(node):
                    one.annotation = None
    return tree


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    yield from (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    yield from (one for one in (node.args.vararg, node.args.kwarg) if one is not None)
