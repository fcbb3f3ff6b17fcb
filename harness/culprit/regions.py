"""What changed between two texts: the regions of a file, reverted one by one, and renamed files. Pure.

A line diff joins neighbouring changed lines into one block, such as five imports, or a decorator and the header below
it. As one edit, the whole block would need everything that one of its lines needs. So blocks are split into pieces:
imports, decorators, definitions that were added or removed, and the statements that a function gained or lost.
"""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.syntax import names_in, outline_of, parsed
from harness.model.culprit import Region

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
            parts = cut_apart(blocks, before, after, lines)
            blocks = tuple(block for part in parts for block in _by_statement(part, before, after, lines))
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
        names = names_in(text)
        lost = (names_in(self.before).defined | names_in(self.after).defined) - names.defined
        return names.unbound | (lost & names.own_attributes)

    def lacking(self, old: Iterable[int]) -> frozenset[int]:
        """More regions to revert because of undefined names: those with a definition, else all users."""
        old = frozenset(old)
        needed: set[int] = set()
        for name in self.flaws(old):
            using = re.compile(rf"\b{name}\b")
            bring = {i for i, (text, _) in enumerate(self.texts) if defines(text, name)} - old
            keep = {i for i, (_, text) in enumerate(self.texts) if name in text and using.search(text)} - old
            needed |= bring or keep
        return frozenset(needed)

    @functools.cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The text of each region before and after."""
        before, after = lines_of(self.before), lines_of(self.after)
        return tuple(("".join(before[a:b]), "".join(after[c:d])) for a, b, c, d in self.blocks)

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


def defines(text: str, name: str) -> bool:
    """Whether some lines of a file seem to define a name: as a function, parameter, variable, attribute or import."""
    if name not in text:  # true of most texts, and known much sooner
        return False
    pattern = (
        rf"\b(?:def|class)\s+{name}\b|^[ \t]*(?:self\.|cls\.)?{name}\s*(?::|=(?!=))|\bimport\b.*\b{name}\b"
        rf"|^[ \t]*{name},?$|\bdef\s+\w+\(.*\b{name}\b"
    )
    return re.search(pattern, text, re.M) is not None


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
    around = [
        definition
        for definition in outline_of(source).definitions
        if definition.first <= top and bottom <= definition.last
    ]
    return max(around, key=lambda definition: definition.first).qualname if around else ""


@functools.lru_cache(maxsize=_MOST_TEXTS)
def functions(source: str) -> frozenset[str]:
    """The qualified names of the functions in a Python text."""
    return frozenset(definition.qualname for definition in outline_of(source).definitions if definition.is_function)


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


def _by_statement(block: Block, before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]) -> Iterator[Block]:
    """Split a block that only adds, or only removes, several whole statements of a function."""
    a, b, c, d = block
    if (a == b) == (c == d):
        yield block
        return
    source, rows, (first, last) = (after, lines[1], (c, d)) if a == b else (before, lines[0], (a, b))
    ends, loose = [first], set(range(first, last))
    for top, end in outline_of(source).inner:
        start = top - 1
        if ends[-1] <= start and end <= last:
            ends.append(end)
            loose.difference_update(range(start, end))
    # Lines before, between and after whole statements may only be empty or comments.
    is_whole = all(not line or line.startswith("#") for line in (rows[number].strip() for number in loose))
    cuts = [first, *ends[1:-1], last] if is_whole else [first, last]
    for start, end in itertools.pairwise(cuts):
        yield (a, b, start, end) if a == b else (start, end, c, d)


def _aligned(old: list[_Piece], new: list[_Piece], block: Block) -> Iterator[Block]:
    """Pair the pieces of a block that correspond to each other; a piece that only one side has is a block of its own.

    Lines in place of other lines are one block, except definitions in place of something else, and imports.
    """
    matcher = difflib.SequenceMatcher(
        None, [piece.kind for piece in old], [piece.kind for piece in new], autojunk=False
    )
    for tag, i, j, k, m in matcher.get_opcodes():
        gone, come = old[i:j], new[k:m]
        starts = old[i].first if i < len(old) else block[1], new[k].first if k < len(new) else block[3]
        ends = gone[-1].last if gone else starts[0], come[-1].last if come else starts[1]
        if tag == "equal":
            yield from ((was.first, was.last, now.first, now.last) for was, now in zip(gone, come, strict=True))
        elif tag == "replace" and not _are_apart(gone, come):
            yield starts[0], ends[0], starts[1], ends[1]
        else:
            yield from ((piece.first, piece.last, starts[1], starts[1]) for piece in gone)
            yield from ((ends[0], ends[0], piece.first, piece.last) for piece in come)


def _are_apart(gone: Sequence[_Piece], come: Sequence[_Piece]) -> bool:
    """Whether pieces in place of others are no newer form of them."""
    are_imports = all(piece.kind.startswith(_IMPORT) for piece in (*gone, *come))
    have_definitions = [any(piece.kind.startswith(_DEFINITION) for piece in side) for side in (gone, come)]
    return are_imports or have_definitions[0] != have_definitions[1]


def _pieces(source: str, lines: Sequence[str], ends: tuple[int, int], alone: frozenset[str]) -> list[_Piece]:
    """Split the lines [first, last) into imports, decorators, definitions named in `alone`, and the lines between them.

    Empty lines belong to the previous piece.
    """
    first, last = ends
    pieces: list[_Piece] = []
    reached = first

    def rest(until: int) -> int:
        """Take the lines before a piece; returns where the piece begins, which includes unclaimed empty lines."""
        filled = next((n for n in range(reached, until) if lines[n].strip()), until)
        start = reached
        if pieces and (filled == until or pieces[-1].kind.startswith(_DEFINITION)):
            pieces[-1], start = _Piece(pieces[-1].first, filled, pieces[-1].kind), filled
        if filled == until:
            return start
        pieces.append(_Piece(start, until, _OTHER))
        return until

    wholes = [piece for piece in _definition_pieces(source) if piece.kind.removeprefix(_DEFINITION) in alone]
    wholes = [piece for piece in wholes if first <= piece.first and piece.last <= last]
    for piece in sorted((*wholes, *_own_pieces(source)), key=lambda piece: (piece.first, -piece.last)):
        if piece.first >= reached and piece.last <= last:
            pieces.append(_Piece(rest(piece.first), piece.last, piece.kind))
            reached = piece.last
    if (start := rest(last)) < last:
        pieces.append(_Piece(start, last, _OTHER))
    return pieces


@functools.lru_cache(maxsize=16)
def _own_pieces(source: str) -> tuple[_Piece, ...]:
    """The imports and decorators of a text that share no line with an earlier one, in order."""
    outline = outline_of(source)
    pieces = [
        _Piece(statement.first - 1, statement.last, f"{_IMPORT}{statement.module}") for statement in outline.imports
    ]
    pieces += [_Piece(first - 1, last, f"@{decorator}") for first, last, decorator in outline.decorators]
    ordered = sorted(pieces, key=lambda piece: piece.first)
    return tuple(piece for n, piece in enumerate(ordered) if n == 0 or piece.first >= ordered[n - 1].last)


def _only_in_first(first: str, second: str) -> frozenset[str]:
    """The qualified names of definitions that only the first text has."""
    names = [{piece.kind.removeprefix(_DEFINITION) for piece in _definition_pieces(text)} for text in (first, second)]
    return frozenset(names[0] - names[1])


def _definition_pieces(source: str) -> Iterator[_Piece]:
    """The classes, functions and methods of a text, decorators included, without those defined in functions."""
    for definition in outline_of(source).definitions:
        if not definition.is_in_function:
            yield _Piece(definition.first - 1, definition.last, f"{_DEFINITION}{definition.qualname}")


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
    """The lines that occur once in each text, as far as they are in the same order, as in a patience diff."""
    once = {line for line, count in Counter(before).items() if count == 1 and line.strip()}
    once &= {line for line, count in Counter(after).items() if count == 1}
    old, new = ([place for place, line in enumerate(text) if line in once] for text in (before, after))
    matcher = difflib.SequenceMatcher(None, [before[i] for i in old], [after[k] for k in new], autojunk=False)
    return [(old[i + n], new[k + n]) for i, k, size in matcher.get_matching_blocks() for n in range(size)]


_RENAMED = 0.5  # least share of equal lines in a renamed file, as in git
_SHARED_BY = 8  # a line in more files does not tell where a file came from


def renamed(removed: Mapping[str, bytes], added: Mapping[str, bytes]) -> dict[str, str]:
    """Map the newer paths of renamed files to the older ones, given the contents of removed and added files by path.

    Empty files are never paired. Files are compared only if they have the same extension and a line that few others
    have.
    """
    renames: dict[str, str] = {}
    by_content = {content: path for path, content in removed.items() if content.strip()}
    for newer, content in added.items():
        if (older := by_content.pop(content, None)) is not None:
            renames[newer] = older
    gone = {path: _line_counts(removed[path]) for path in removed if path not in renames.values()}
    come = {path: _line_counts(added[path]) for path in added if path not in renames}
    having: dict[tuple[str, bytes], list[str]] = {}
    for older, lines in gone.items():
        for line in lines:
            having.setdefault((older.rpartition(".")[2], line), []).append(older)
    shared = (
        (having.get((newer.rpartition(".")[2], line), ()), newer) for newer, lines in come.items() for line in lines
    )
    pairs = {(older, newer) for olders, newer in shared if len(olders) <= _SHARED_BY for older in olders}
    likeness = sorted((-_share_of_equal_lines(gone[older], come[newer]), older, newer) for older, newer in pairs)
    for minus, older, newer in likeness:
        if -minus >= _RENAMED and newer not in renames and older not in renames.values():
            renames[newer] = older
    return renames


def _line_counts(content: bytes) -> Counter[bytes]:
    return Counter(line for line in content.splitlines() if line.strip())


def _share_of_equal_lines(first: Counter[bytes], second: Counter[bytes]) -> float:
    """The number of common lines relative to the longer text, 0 to 1."""
    longest = max(first.total(), second.total())
    return (first & second).total() / longest if longest else 0.0
