"""Import statements and decorators among changed lines: each is an edit of its own. Pure.

A line diff joins neighbouring lines to one block, such as five imports or a decorator with the header below it, and
what one of them needs then all of them need. And an import that only adds or removes names makes no difference by
itself: it serves what uses the name.
"""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from harness.culprit.facts import Function
from harness.culprit.line_diff import Block

_WORTH_READING = re.compile(r"\s*(?:from\s|import\s|@)")
_OTHER, _IMPORT = "", "import "


@frozen
class Import:
    """One import statement with its lines, counted from 1, and each name that it binds: name, origin, line."""

    first: int
    last: int
    module: str
    names: tuple[tuple[str, str, int], ...]


@frozen
class _Piece:
    """Some lines of a block, from `first` up to and without `last`, counted from 0; `kind` tells pieces alike."""

    first: int
    last: int
    kind: str


def cut_apart(
    blocks: Sequence[Block], before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]
) -> Iterator[Block]:
    """The blocks of a line diff of two Python texts, cut between imports and after decorators."""
    old, new = lines
    for block in blocks:
        a, b, c, d = block
        if max(b - a, d - c) < 2 or not any(map(_WORTH_READING.match, (*old[a:b], *new[c:d]))):
            yield block
            continue
        for i, j, k, m in _aligned(_pieces(before, old, a, b), _pieces(after, new, c, d), block):
            if old[i:j] != new[k:m]:
                yield i, j, k, m


def serves_only(block: Block, before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]) -> bool:
    """Whether a block only adds or removes imported names, of which none comes from elsewhere now."""
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
            yield starts[0], ends[0], starts[1], ends[1]
        else:
            yield from ((one.first, one.last, starts[1], starts[1]) for one in old[i:j])
            yield from ((ends[0], ends[0], one.first, one.last) for one in new[k:m])


def _pieces(source: str, lines: Sequence[str], first: int, last: int) -> list[_Piece]:
    """Whole imports and decorators among some lines, and what is between them; empty lines go with the piece before."""
    found: list[_Piece] = []
    reached = first

    def rest(until: int) -> None:
        if until > reached:
            says_nothing = not any(line.strip() for line in lines[reached:until])
            if says_nothing and found:
                found[-1] = _Piece(found[-1].first, until, found[-1].kind)
            else:
                found.append(_Piece(reached, until, _OTHER))

    for piece in _own_pieces(source):
        if piece.first >= reached and piece.last <= last:
            rest(piece.first)
            found.append(piece)
            reached = piece.last
    rest(last)
    return found


@functools.lru_cache(maxsize=16)
def _own_pieces(source: str) -> tuple[_Piece, ...]:
    """Every import and decorator of a text that has its lines for itself, in order."""
    tree = _tree(source)
    found = [_Piece(one.first - 1, one.last, f"{_IMPORT}{one.module}") for one in imports_of(source)]
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef | Function):
            starts = [one.lineno for one in node.decorator_list]
            ends = [*starts[1:], node.lineno] if starts else []
            found += [
                _Piece(start - 1, end - 1, "@" + ast.dump(one))
                for one, start, end in zip(node.decorator_list, starts, ends, strict=True)
            ]
    ordered = sorted(found, key=lambda piece: piece.first)
    return tuple(one for n, one in enumerate(ordered) if n == 0 or one.first >= ordered[n - 1].last)


@functools.lru_cache(maxsize=1024)
def imports_of(source: str) -> tuple[Import, ...]:
    """Every import statement of a Python text, () where it is none."""
    tree = _tree(source)
    found = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = tuple((one.asname or one.name, f"{module}:{one.name}", one.lineno) for one in node.names)
        elif isinstance(node, ast.Import):
            module = node.names[0].name
            names = tuple((one.asname or one.name.partition(".")[0], one.name, one.lineno) for one in node.names)
        else:
            continue
        found.append(Import(node.lineno, node.end_lineno or node.lineno, module, names))
    return tuple(found)


@functools.lru_cache(maxsize=16)
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _bound_in(source: str, lines: Sequence[str], first: int, last: int) -> dict[str, str] | None:
    """Name -> origin of what is imported on some lines (from `first` up to and without `last`, counted from 0).

    None where they do anything else, take all names of a module, or have the head of a statement without its end.
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
    return {number: one for one in imports_of(source) for number in range(one.first, one.last + 1)}
