"""A patience diff of two texts: it is fast for long files and keeps functions together. Pure.

The anchors are lines that occur exactly once in each text (Bram Cohen's patience diff, as in `git diff --patience`).
Where a part has no anchors, `difflib` compares its lines.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence

Block = tuple[int, int, int, int]  # before[a:b] became after[c:d]


def changed_blocks(before: Sequence[str], after: Sequence[str]) -> tuple[Block, ...]:
    """The runs of differing lines, in order; any two of them are separated by at least one equal line."""
    joined: list[Block] = []
    for a, b, c, d in _differing(before, after, 0, len(before), 0, len(after)):
        if joined and joined[-1][1] == a and joined[-1][3] == c:
            joined[-1] = (joined[-1][0], b, joined[-1][2], d)
        else:
            joined.append((a, b, c, d))
    return tuple(joined)


def _differing(before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int) -> Iterator[Block]:
    while a < b and c < d and before[a] == after[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and before[b - 1] == after[d - 1]:
        b, d = b - 1, d - 1
    if a == b or c == d:
        if (a, c) != (b, d):
            yield a, b, c, d
        return
    anchors = _anchors(before[a:b], after[c:d])
    if not anchors:
        matcher = difflib.SequenceMatcher(None, before[a:b], after[c:d], autojunk=False)
        yield from ((a + i, a + j, c + k, c + m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal")
        return
    i, k = a, c
    for x, y in anchors:
        yield from _differing(before, after, i, a + x, k, c + y)
        i, k = a + x + 1, c + y + 1
    yield from _differing(before, after, i, b, k, d)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest sequence of lines that occur once in each text and in the same order (by patience sorting)."""
    once = {line for line, count in Counter(before).items() if count == 1 and line.strip()}
    once &= {line for line, count in Counter(after).items() if count == 1}
    place = {line: i for i, line in enumerate(before) if line in once}
    pairs = [(place[line], k) for k, line in enumerate(after) if line in once]
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, (i, _) in enumerate(pairs):
        at = bisect.bisect_left(tops, i)
        previous.append(ends[at - 1] if at else -1)
        if at == len(tops):
            tops.append(i)
            ends.append(index)
        else:
            tops[at], ends[at] = i, index
    found: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]
