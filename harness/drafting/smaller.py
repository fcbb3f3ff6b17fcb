"""Makes a script smaller while it still fails the same way: statements are taken out, outer ones first.

As in hierarchical delta debugging (Misherghi and Su, "HDD: Hierarchical Delta Debugging", ICSE 2006) it goes level by
level over Python's statements. Only what can run is run: a candidate that does not parse, or that uses a name which
nothing defines any more, is never a run.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence

from attrs import define, field, frozen

from harness.drafting.scripts import undefined_in
from harness.drafting.source import parses, tree_of
from harness.model import Verdict

Judged = Callable[[str], Verdict]
_DEEPEST = 6


@frozen
class _Statement:
    """A statement by its lines, from 1; `indent` is what its first line starts with, `block` all of its block."""

    first: int
    last: int
    indent: str
    block: Sequence[ast.stmt]


@define
class Smaller:
    """The smallest source so far that fails as the first one does: `source`, after `runs` runs."""

    source: str
    judged: Judged
    runs: int = field(default=0, init=False)

    def reduce(self, told: Callable[[str], None]) -> None:
        """Take out statements until none of them can go; `told` gets a sentence after each smaller source."""
        for depth in range(_DEEPEST):
            self._at_depth(depth, told)

    def _at_depth(self, depth: int, told: Callable[[str], None]) -> None:
        """Take out the statements at a depth: all of them, then each half, each quarter and so on, the last first.

        The last first, because what uses a definition stands below it.
        """
        missing = frozenset(undefined_in(tree_of(self.source)))
        size = end = len(tuple(_statements(self.source, depth)))
        while size:
            while end > 0:
                statements = tuple(_statements(self.source, depth))
                start = max(0, end - size)
                source = _without(self.source.splitlines(), statements[start:end])
                if len(source) < len(self.source) and self._is_bad(source, missing):
                    self.source = source
                    told(f"{len(source.splitlines())} lines after {self.runs} runs")
                end = start
            size, end = size // 2, len(tuple(_statements(self.source, depth)))

    def _is_bad(self, source: str, missing: frozenset[str]) -> bool:
        if parses(source) is not None or frozenset(undefined_in(tree_of(source))) - missing:
            return False
        self.runs += 1
        return self.judged(source) is Verdict.BAD


def removed(before: str, after: str) -> Iterator[str]:
    """Yield the lines of a diff from a source to a smaller one, without what is the same."""
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0):
        if not line.startswith(("---", "+++")):
            yield line


def _statements(source: str, depth: int) -> Iterator[_Statement]:
    """Yield the statements at a depth, 0 for those of the module, that begin a line."""
    level: list[list[ast.stmt]] = [tree_of(source).body]
    for _ in range(depth):
        level = [block for body in level for statement in body for block in _blocks(statement)]
    lines = source.splitlines()
    for body in level:
        for statement in body:
            first = _first(statement)
            indent = lines[first - 1][: statement.col_offset]
            if not indent.strip():
                yield _Statement(first, statement.end_lineno or first, indent, body)


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def _without(lines: Sequence[str], gone: Sequence[_Statement]) -> str:
    """Return the source without some statements and empty lines in a row; a block that would be empty gets a `pass`."""
    out = {line for one in gone for line in range(one.first, one.last + 1)}
    passes = {
        first.first: f"{first.indent}pass"
        for _, block in itertools.groupby(gone, key=lambda one: id(one.block))
        if (first := next(block)).indent and len(first.block) == 1 + len(tuple(block))
    }
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        if number in passes:
            kept.append(passes[number])
        elif number not in out and (line.strip() or (kept and kept[-1].strip())):
            kept.append(line)
    return "\n".join(kept).rstrip() + "\n"
