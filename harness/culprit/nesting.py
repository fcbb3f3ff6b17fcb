"""Finds regions of reindented code, which are one change even if lines between them are equal. Pure.

If a block is wrapped in another `for` or `if`, all its lines are indented, but a line diff still finds a few equal ones
among them: a blank line, an `else:`, a line that happens to have the same depth. With only half of such a block
reverted, a file may be valid Python that does something neither release does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from harness.culprit.regions import FileDifference, lines_of
from harness.culprit.syntax import outline_of

_MOST_BETWEEN = 3  # equal lines between two regions of one reindented block
_SAYS_LITTLE = frozenset({"else:", "try:", "finally:", "pass", "break", "continue", "return"})
_WORD = re.compile(r"\w\w")


def moved_together(difference: FileDifference) -> Iterator[tuple[int, int]]:
    """Pairs of neighbouring regions, by number, in which code of one function was reindented."""
    for function, numbers in difference.groups().items():
        if not function or not difference.is_function(function) or len(numbers) < 2:
            continue
        before, after = _depths(difference, numbers, is_newer=False), _depths(difference, numbers, is_newer=True)
        moved = {text for text in before.keys() & after.keys() if before[text].isdisjoint(after[text])}
        for one, other in itertools.pairwise(numbers):
            (_, b, _, _), (a, _, _, _) = difference.blocks[one], difference.blocks[other]
            if other == one + 1 and a - b <= _MOST_BETWEEN and all(_has(difference, n, moved) for n in (one, other)):
                yield one, other


def _has(difference: FileDifference, number: int, texts: set[str]) -> bool:
    """Whether a region contains one of these statements, on either side."""
    return any(not texts.isdisjoint(_statements(difference, number, is_newer=is_newer)) for is_newer in (False, True))


def _depths(difference: FileDifference, numbers: Sequence[int], *, is_newer: bool) -> dict[str, set[int]]:
    """The indentations, in characters, of each statement in some regions on one side."""
    found: dict[str, set[int]] = {}
    for number in numbers:
        for text, depth in _statements(difference, number, is_newer=is_newer).items():
            found.setdefault(text, set()).add(depth)
    return found


def _statements(difference: FileDifference, number: int, *, is_newer: bool) -> dict[str, int]:
    """The first lines of the distinctive statements in a region, with their indentation in characters."""
    text = difference.after if is_newer else difference.before
    first, last = difference.blocks[number][2:] if is_newer else difference.blocks[number][:2]
    starts, lines = outline_of(text).starts, lines_of(text)
    found = {}
    for position in range(first, last):
        stripped = lines[position].strip()
        if position + 1 in starts and stripped not in _SAYS_LITTLE and _WORD.search(stripped):
            found[stripped] = len(lines[position]) - len(lines[position].lstrip())
    return found
