"""Finds and replaces parts of Python source, using its syntax tree."""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

Tree = dict[str, str]
parsed = functools.lru_cache(maxsize=2048)(ast.parse)  # safe to cache, because trees are never changed
Function = ast.FunctionDef | ast.AsyncFunctionDef
Refactoring = Callable[[Tree, random.Random], Tree | None]


@frozen
class Source:
    """One file of a package: its path, text and syntax tree."""

    path: str
    text: str
    module: ast.Module


def of_one_file(refactor: Callable[[Tree, random.Random, Source], Tree | None]) -> Refactoring:
    """Turn a refactoring that starts in one file into one of a package, which chooses the file at random."""

    @functools.wraps(refactor)
    def refactoring(tree: Tree, rng: random.Random) -> Tree | None:
        paths = [path for path, text in tree.items() if text.isascii() and len(text) > 200]
        if not paths:
            return None
        path = rng.choice(paths)
        return refactor(tree, rng, Source(path, tree[path], parsed(tree[path])))

    return refactoring


def spliced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with these spans (first, last, new text) replaced."""
    for first, last, new in sorted(edits, reverse=True):
        text = text[:first] + new + text[last:]
    return text


def line_starts(text: str) -> list[int]:
    """The position at which each line starts."""
    found = [0]
    for line in text.splitlines(keepends=True):
        found.append(found[-1] + len(line))
    return found


def span(node: Any, starts: list[int]) -> tuple[int, int]:
    """The start and end position of a node in its text."""
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def functions(tree: ast.AST) -> list[Function]:
    """The functions of a tree."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def everywhere(tree: Tree, name: str) -> int:
    """How often a name occurs in all files."""
    return sum(len(re.findall(rf"\b{re.escape(name)}\b", text)) for text in tree.values())


def defined_once(tree: Tree, name: str) -> bool:
    """Whether exactly one function has this name."""
    return sum(len(re.findall(rf"\bdef {re.escape(name)}\b", text)) for text in tree.values()) == 1


def renamed_everywhere(tree: Tree, name: str, new: str) -> Tree:
    """Return all files with a name replaced."""
    return {path: re.sub(rf"\b{re.escape(name)}\b", new, text) for path, text in tree.items()}


def plain_functions(tree: Tree, module: ast.Module) -> list[Function]:
    """Module-level functions without decorators whose name is unique in the package."""
    found = [node for node in module.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    return [f for f in found if defined_once(tree, f.name) and len(f.name) > 3]


def calls_of(tree: Tree, name: str) -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call of a name: its file, node, and the file's text."""
    for path, text in tree.items():
        if name in text and text.isascii():
            for node in ast.walk(parsed(text)):
                if isinstance(node, ast.Call):
                    called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                    if called == name:
                        yield path, node, text


def chunk(text: str, node: ast.stmt) -> tuple[int, int]:
    """The start and end position of a statement's lines."""
    starts = line_starts(text)
    return starts[node.lineno - 1], starts[(node.end_lineno or node.lineno)]
