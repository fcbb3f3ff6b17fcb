"""Splits blocks of a line diff into pieces: imports, decorators, and definitions that were added or removed. Pure.

A line diff joins neighbouring changed lines into one block, such as five imports, or a decorator and the header below
it. As one edit, the whole block would need everything that one of its lines needs. This module also finds imports that
only add or remove names: they make no difference alone, and only serve the lines that use the names.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from harness.culprit.line_diff import Block
from harness.culprit.syntax import Import, outline_of

_WORTH_READING = re.compile(r"\s*(?:from\s|import\s|@|def\s|class\s|async\s)")
_OTHER, _IMPORT, _DEFINITION = "", "import ", "def "


@frozen
class _Piece:
    """The lines [first, last) of a block, counted from 0. Pieces of the same `kind` correspond to each other."""

    first: int
    last: int
    kind: str


def cut_apart(
    blocks: Sequence[Block], before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]
) -> Iterator[Block]:
    """Split the blocks of a line diff of two Python texts at imports, decorators, and added or removed definitions.

    `lines` are the lines of both texts, as `regions.lines_of` splits them.
    """
    old, new = lines
    gone, added = _only_in_first(before, after), _only_in_first(after, before)
    for block in blocks:
        a, b, c, d = block
        if max(b - a, d - c) < 2 or not any(map(_WORTH_READING.match, (*old[a:b], *new[c:d]))):
            yield block
            continue
        pieces = _pieces(before, old, (a, b), gone), _pieces(after, new, (c, d), added)
        for i, j, k, m in _aligned(*pieces, block):
            if old[i:j] != new[k:m]:
                yield i, j, k, m


def serves_only(block: Block, before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]) -> bool:
    """Whether a block only adds or removes imported names, and no name has another origin than before."""
    a, b, c, d = block
    older = _bound_in(before, lines[0], a, b)
    newer = _bound_in(after, lines[1], c, d) if older is not None else None
    if older is None or newer is None or not (older or newer):
        return False
    return all(older[name] == newer[name] for name in older.keys() & newer.keys())


def _aligned(old: list[_Piece], new: list[_Piece], block: Block) -> Iterator[Block]:
    matcher = difflib.SequenceMatcher(None, [one.kind for one in old], [one.kind for one in new], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        starts = old[i].first if i < len(old) else block[1], new[k].first if k < len(new) else block[3]
        ends = old[j - 1].last if j > i else starts[0], new[m - 1].last if m > k else starts[1]
        if tag == "equal":
            pairs = zip(old[i:j], new[k:m], strict=True)
            yield from ((one.first, one.last, other.first, other.last) for one, other in pairs)
        elif tag == "replace" and not all(one.kind.startswith(_IMPORT) for one in (*old[i:j], *new[k:m])):
            yield from _replaced(old[i:j], new[k:m], (starts[0], ends[0], starts[1], ends[1]))
        else:
            yield from ((one.first, one.last, starts[1], starts[1]) for one in old[i:j])
            yield from ((ends[0], ends[0], one.first, one.last) for one in new[k:m])


def _replaced(old: Sequence[_Piece], new: Sequence[_Piece], block: Block) -> Iterator[Block]:
    """A block whose pieces differ; definitions at its ends are split off if only one side has definitions."""
    a, b, c, d = block
    has_old, has_new = (any(one.kind.startswith(_DEFINITION) for one in side) for side in (old, new))
    side = old if has_old else new
    first = next((n for n, one in enumerate(side) if not one.kind.startswith(_DEFINITION)), len(side))
    if has_old == has_new or (first == 0 and not side[-1].kind.startswith(_DEFINITION)):
        yield block
        return
    last = next((n for n in range(len(side), first, -1) if not side[n - 1].kind.startswith(_DEFINITION)), first)
    heads, tails = side[:first], side[last:]
    reached, until = (heads[-1].last if heads else (a if has_old else c)), (tails[0].first if tails else None)
    if has_old:
        yield from ((one.first, one.last, c, c) for one in heads)
        yield reached, b if until is None else until, c, d
        yield from ((one.first, one.last, d, d) for one in tails)
    else:
        yield from ((a, a, one.first, one.last) for one in heads)
        yield a, b, reached, d if until is None else until
        yield from ((b, b, one.first, one.last) for one in tails)


def _pieces(source: str, lines: Sequence[str], ends: tuple[int, int], alone: frozenset[str]) -> list[_Piece]:
    """Split the lines [first, last) into imports, decorators, definitions named in `alone`, and the lines between them.

    Empty lines belong to the previous piece.
    """
    first, last = ends
    found: list[_Piece] = []
    reached = first

    def rest(until: int) -> int:
        """Take the lines before a piece; returns where the piece begins, which includes unclaimed empty lines."""
        filled = next((n for n in range(reached, until) if lines[n].strip()), until)
        start = reached
        if found and (filled == until or found[-1].kind.startswith(_DEFINITION)):
            found[-1], start = _Piece(found[-1].first, filled, found[-1].kind), filled
        if filled == until:
            return start
        found.append(_Piece(start, until, _OTHER))
        return until

    wholes = [one for one in _definition_pieces(source) if one.kind.removeprefix(_DEFINITION) in alone]
    wholes = [one for one in wholes if first <= one.first and one.last <= last]
    for piece in sorted((*wholes, *_own_pieces(source)), key=lambda one: (one.first, -one.last)):
        if piece.first >= reached and piece.last <= last:
            found.append(_Piece(rest(piece.first), piece.last, piece.kind))
            reached = piece.last
    if (start := rest(last)) < last:
        found.append(_Piece(start, last, _OTHER))
    return found


@functools.lru_cache(maxsize=16)
def _own_pieces(source: str) -> tuple[_Piece, ...]:
    """The imports and decorators of a text that share no line with an earlier one, in order."""
    outline = outline_of(source)
    found = [_Piece(one.first - 1, one.last, f"{_IMPORT}{one.module}") for one in outline.imports]
    found += [_Piece(first - 1, last, f"@{told}") for first, last, told in outline.decorators]
    ordered = sorted(found, key=lambda piece: piece.first)
    return tuple(one for n, one in enumerate(ordered) if n == 0 or one.first >= ordered[n - 1].last)


def _only_in_first(one: str, other: str) -> frozenset[str]:
    """The qualified names of definitions that only the first text has."""
    names = [{piece.kind.removeprefix(_DEFINITION) for piece in _definition_pieces(text)} for text in (one, other)]
    return frozenset(names[0] - names[1])


def _definition_pieces(source: str) -> Iterator[_Piece]:
    """The classes, functions and methods of a text, decorators included, without those defined in functions."""
    for one in outline_of(source).definitions:
        if not one.is_in_function:
            yield _Piece(one.first - 1, one.last, f"{_DEFINITION}{one.qualname}")


def _bound_in(source: str, lines: Sequence[str], first: int, last: int) -> dict[str, str] | None:
    """The names imported on the lines [first, last), counted from 0, with their origins.

    None if the lines have anything else, a star import, or the start of an import that ends after them.
    """
    found: dict[str, str] = {}
    by_line = _by_line(source)
    for number, line in enumerate(lines[first:last], first + 1):
        one = by_line.get(number)
        if one is None:
            if line.split("#")[0].strip():
                return None
        elif number == one.first and one.last > last:
            return None
        else:
            found |= {name: origin for name, origin, place in one.names if place == number}
    return None if "*" in found else found


@functools.lru_cache(maxsize=64)
def _by_line(source: str) -> dict[int, Import]:
    return {number: one for one in outline_of(source).imports for number in range(one.first, one.last + 1)}
