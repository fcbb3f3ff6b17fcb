"""The changed regions of a file: computed from a line diff, named by their function, and reverted one by one. Pure."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.line_diff import changed_blocks
from harness.culprit.names import names_in, undefined_in
from harness.culprit.pieces import cut_apart
from harness.culprit.syntax import outline_of, parsed
from harness.model.culprit import Region

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTEXT_LINES = 3
_MOST_TEXTS = 4096  # a search reads both texts of hundreds of files repeatedly
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@frozen(slots=False)
class FileDifference:
    """Two texts of one file and the regions in which they differ, in order.

    Each block (a, b, c, d) is a region: the lines [a, b) before and [c, d) after, counted from 0.
    """

    path: str
    before: str
    after: str
    blocks: tuple[tuple[int, int, int, int], ...] = field(repr=False)

    @classmethod
    def between(cls, path: str, before: str, after: str) -> FileDifference:
        """Compare two texts by lines, with line ends; imports, decorators and definitions of Python are split off."""
        lines = lines_of(before), lines_of(after)
        blocks = changed_blocks(*lines)
        if path.endswith(".py"):
            blocks = tuple(cut_apart(blocks, before, after, lines))
        return cls(path, before, after, blocks)

    def mixed(self, old: Iterable[int]) -> str:
        """Return the newer text with these regions (by number) as in the older one."""
        reverted = set(old)
        before, after = lines_of(self.before), lines_of(self.after)
        lines: list[str] = []
        reached = 0
        for number, (a, b, c, d) in enumerate(self.blocks):
            lines += after[reached:c]
            lines += before[a:b] if number in reverted else after[c:d]
            reached = d
        return "".join((*lines, *after[reached:]))

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - differences are few and live as long as the search
    def region(self, number: int) -> Region:
        """A region, for reports."""
        a, b, c, d = self.blocks[number]
        return Region(
            file=self.path,
            before=(a + 1, b),
            after=(c + 1, d),
            function=self.function_of(number),
            diff=self._diff(number),
        )

    def function_of(self, number: int) -> str:
        """The qualified name of the innermost function or class around a region; "" at module level."""
        a, b, c, d = self.blocks[number]
        return _enclosing(self.after, c, d) if d > c else _enclosing(self.before, a, b)

    def is_function(self, name: str) -> bool:
        """Whether a qualified name is that of a function in either text."""
        return name in functions(self.after) or name in functions(self.before)

    def groups(self) -> dict[str, tuple[int, ...]]:
        """The numbers of the regions by the qualified name of the definition around them; "" is the module level."""
        groups: dict[str, list[int]] = {}
        for number in range(len(self.blocks)):
            groups.setdefault(self.function_of(number), []).append(number)
        return {name: tuple(numbers) for name, numbers in groups.items()}

    def flipped(self) -> FileDifference:
        """The same difference with both texts swapped; its regions keep their numbers."""
        blocks = tuple((c, d, a, b) for a, b, c, d in self.blocks)
        return FileDifference(self.path, self.after, self.before, blocks)

    def flaws(self, old: Iterable[int]) -> frozenset[str]:
        """Names that are used but undefined once these regions are reverted, unless a side has that flaw too."""
        if not self.path.endswith(".py"):
            return frozenset()
        return self._missing(self.mixed(old)) - self._usual

    def _missing(self, text: str) -> frozenset[str]:
        """Names that a text uses but does not define; attributes of `self` only if one of both texts defines them."""
        here = names_in(text)
        lost = (names_in(self.before).defined | names_in(self.after).defined) - here.defined
        return undefined_in(text) | (lost & here.own_attributes)

    def lacking(self, old: Iterable[int]) -> frozenset[int]:
        """More regions to revert because of undefined names: those with a definition, else all users."""
        old = frozenset(old)
        before, after = lines_of(self.before), lines_of(self.after)
        needed: set[int] = set()
        for name in self.flaws(old):
            defining = re.compile(
                rf"\b(?:def|class)\s+{name}\b|^\s*{name}\s*[:=]|\bimport\b.*\b{name}\b|^\s*{name},?$", re.M
            )
            using = re.compile(rf"\b{name}\b")
            bring = {i for i, (a, b, _, _) in enumerate(self.blocks) if defining.search("".join(before[a:b]))} - old
            keep = {i for i, (_, _, c, d) in enumerate(self.blocks) if using.search("".join(after[c:d]))} - old
            needed |= bring or keep
        return frozenset(needed)

    @functools.cached_property
    def _usual(self) -> frozenset[str]:
        return self._missing(self.before) | self._missing(self.after)

    def _diff(self, number: int) -> str:
        a, b, c, d = self.blocks[number]
        before, after = lines_of(self.before), lines_of(self.after)
        first, last = max(0, c - _CONTEXT_LINES), min(len(after), d + _CONTEXT_LINES)
        head = f"@@ -{a + 1 - (c - first)},{b - a + (c - first) + (last - d)} +{first + 1},{last - first} @@"
        lines = [f" {line}" for line in after[first:c]]
        lines += [f"-{line}" for line in before[a:b]] + [f"+{line}" for line in after[c:d]]
        lines += [f" {line}" for line in after[d:last]]
        return "\n".join([head, *(line.rstrip("\r\n") for line in lines)])


def used_names(source: str) -> frozenset[str]:
    """Names, attributes and imports in a Python text; empty if it is not valid Python."""
    tree = parsed(source)
    if tree is None:
        return frozenset()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names
    }
    return frozenset(names)


@functools.lru_cache(maxsize=_MOST_TEXTS)
def lines_of(source: str) -> tuple[str, ...]:
    """The lines of a text with their ends, split as Python's parser does: not at form feeds."""
    return tuple(_LINE.findall(source))


def _enclosing(source: str, first: int, last: int) -> str:
    """The innermost definition around the lines [first, last), counted from 0; empty lines are ignored."""
    filled = [number for number, line in enumerate(lines_of(source)[first:last], first + 1) if line.strip()]
    top, bottom = (filled[0], filled[-1]) if filled else (first + 1, last)
    around = [one for one in outline_of(source).definitions if one.first <= top and bottom <= one.last]
    return max(around, key=lambda one: one.first).qualname if around else ""


@functools.lru_cache(maxsize=_MOST_TEXTS)
def functions(source: str) -> frozenset[str]:
    """The qualified names of the functions in a Python text."""
    return frozenset(one.qualname for one in outline_of(source).definitions if one.is_function)
