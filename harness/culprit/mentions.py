"""Which files a Python file can't be run without, as far as its text tells: what it imports or names. Pure."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def lacked(
    start: Collection[str],
    files: Collection[str],
    older: Callable[[str], bytes | None],
    newer: Callable[[str], bytes | None],
) -> frozenset[str]:
    """Those of `files` without whose newer content the newer texts of `start` can't be run, to the end.

    That is what they import or name and the older side lacks, whole or one of the names that are imported from it.
    Paths are relative to site-packages; `older` and `newer` give a file's content at a side, None where there is none.
    """
    found: set[str] = set()
    border = set(start)
    while border:
        near = {
            other
            for path in border
            for other in mentioned(path, newer(path), files)
            if (text := older(other)) is None
            or any(
                _lacks(text, name) and not _is_module(other, name, older)
                for name in names_from(path, newer(path), other)
            )
        }
        border = near - found - set(start)
        found |= border
    return frozenset(found)


def names_from(path: str, content: bytes | None, other: str) -> frozenset[str]:
    """Names that one text takes from another module (`from module import name`)."""
    try:
        tree = ast.parse(content or b"")
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and _taken_from(path, node) == _module(other)
        for alias in node.names
        if alias.name != "*"
    )


def _lacks(text: bytes, name: str) -> bool:
    return not re.search(rb"\b%s\b" % re.escape(name.encode()), text)


def _is_module(package: str, name: str, older: Callable[[str], bytes | None]) -> bool:
    """Whether a name is that of a module in a package, on the older side."""
    folder = package.removesuffix("__init__.py")
    return any(older(f"{folder}{name}{end}") is not None for end in (".py", "/__init__.py"))


def mentioned(path: str, content: bytes | None, files: Collection[str]) -> frozenset[str]:
    """Those of `files` that one text imports as modules, or of which it writes the name in a string."""
    try:
        tree = ast.parse(content or b"")
    except (SyntaxError, ValueError):
        return frozenset()
    modules = imported(path, tree)
    words = "\n".join(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str
    )
    return frozenset(
        file
        for file in files
        if file != path and (_module(file) in modules if file.endswith(".py") else file.rpartition("/")[2] in words)
    )


def imported(path: str, tree: ast.AST) -> frozenset[str]:
    """Qualified names of all modules that may be imported, and of what is taken from them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _taken_from(path, node)
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    parents = {".".join(name.split(".")[:end]) for name in names for end in range(1, name.count(".") + 1)}
    return frozenset(names | parents)


def _taken_from(path: str, node: ast.ImportFrom) -> str:
    """The module of a `from ... import`, a relative one made absolute."""
    package = path.split("/")[:-1]
    base = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
