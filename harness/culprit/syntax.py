"""Parses Python texts, and outlines them: definitions, imports, and statements by their lines. Pure.

A search reads each text for several purposes, so a text is parsed once for all parts of its outline.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TypeGuard

from attrs import define, field, frozen

_MOST_TEXTS = 4096  # a search reads both texts of hundreds of files repeatedly
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_WITHOUT_NODES = frozenset({"ctx", "op", "ops", "id", "attr"})
_FIELDS = {
    kind: tuple(name for name in kind._fields if name not in _WITHOUT_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


@frozen
class Definition:
    """A class or function with its decorators: first and last line, counted from 1, and its qualified name.

    Definitions inside of other statements, such as `if`, are left out.
    """

    first: int
    last: int
    qualname: str
    is_function: bool
    is_in_function: bool


@frozen
class Import:
    """One import statement: its first and last line, counted from 1, and name, origin and line of what it binds."""

    first: int
    last: int
    module: str
    names: tuple[tuple[str, str, int], ...]


@frozen
class Outline:
    """The outline of a text; lines are counted from 1. That of a text that is not valid Python is empty.

    `decorators` have their first and last line, and their syntax tree as text. `starts` are the lines on which
    statements start. `quiet` are the lines that are empty, comments or docstrings, None without valid Python.
    """

    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    decorators: tuple[tuple[int, int, str], ...] = ()
    starts: frozenset[int] = frozenset()
    quiet: frozenset[int] | None = None


@functools.lru_cache(maxsize=16)
def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a text, which must not be changed; None if it is not valid Python for this interpreter."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def children_of(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node in order, without operators and contexts, such as `Load`.

    Several times as fast as `ast.iter_child_nodes`, which is most of the time of reading a release.
    """
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes below it, level by level, without operators and contexts; see `children_of`."""
    found = [node]
    for one in found:
        yield one
        found += children_of(one)


@functools.lru_cache(maxsize=_MOST_TEXTS)
def outline_of(source: str) -> Outline:
    """The outline of a text."""
    tree = parsed(source)
    if tree is None:
        return Outline()
    reader = _Reader()
    reader.read(tree)
    empty = (
        number
        for number, line in enumerate(source.splitlines(), 1)
        if not (stripped := line.strip()) or stripped.startswith("#")
    )
    return Outline(
        definitions=tuple(reader.definitions),
        imports=tuple(reader.imports),
        decorators=tuple(reader.decorators),
        starts=frozenset(reader.starts),
        quiet=frozenset(reader.docstrings.union(empty)),
    )


@define
class _Reader:
    """Collects the parts of an outline."""

    definitions: list[Definition] = field(factory=list)
    imports: list[Import] = field(factory=list)
    decorators: list[tuple[int, int, str]] = field(factory=list)
    starts: set[int] = field(factory=set)
    docstrings: set[int] = field(factory=set)

    def read(self, tree: ast.Module) -> None:
        """Read the statements of a module, at any depth."""
        # With the definition around each node, None where definitions are left out.
        left: list[tuple[ast.AST, Definition | None]] = [
            (tree, Definition(0, 0, "", is_function=False, is_in_function=False))
        ]
        while left:
            node, around = left.pop()
            for name in _BODIES:
                inner = getattr(node, name, None)
                if not isinstance(inner, list):
                    continue
                if inner and _is_text(inner[0]):
                    self.docstrings.update(range(inner[0].lineno, (inner[0].end_lineno or inner[0].lineno) + 1))
                left += [(one, self._noted(one, around)) for one in inner]

    def _noted(self, node: ast.AST, around: Definition | None) -> Definition | None:
        """Note a statement; returns the definition that it is."""
        if isinstance(node, ast.stmt):
            self.starts.add(node.lineno)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(_import_of(node))
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        starts = [one.lineno for one in node.decorator_list]
        for one, start, end in zip(node.decorator_list, starts, [*starts[1:], node.lineno], strict=False):
            self.decorators.append((start, end - 1, ast.dump(one)))
        if around is None:
            return None
        found = Definition(
            first=min([node.lineno, *starts]),
            last=node.end_lineno or node.lineno,
            qualname=f"{around.qualname}.{node.name}" if around.qualname else node.name,
            is_function=not isinstance(node, ast.ClassDef),
            is_in_function=around.is_function or around.is_in_function,
        )
        self.definitions.append(found)
        return found


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement is only a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _import_of(node: ast.Import | ast.ImportFrom) -> Import:
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        names = tuple((one.asname or one.name, f"{module}:{one.name}", one.lineno) for one in node.names)
    else:
        module = node.names[0].name
        names = tuple((one.asname or one.name.partition(".")[0], one.name, one.lineno) for one in node.names)
    return Import(node.lineno, node.end_lineno or node.lineno, module, names)
