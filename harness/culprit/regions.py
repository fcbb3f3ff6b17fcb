"""What changed between two texts: the regions of a file, reverted one by one, and renamed files. Pure.

A line diff of a rewritten file pairs lines of unrelated functions, so definitions are paired by their names first, and
lines are compared inside each pair. A line diff also joins neighbouring changed lines into one block, such as five
imports, or a decorator and the header below it. As one edit, the whole block would need everything that one of its
lines needs. So blocks are split into pieces: imports, decorators, assignments of a module or class, definitions that
were added, removed or moved, and statements that were only added or only removed.
"""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

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
        if not path.endswith(".py"):
            return cls(path, before, after, changed_blocks(*lines))
        chunks = _chunks(before, after, lines)
        parts = (part for block in _by_definition(*chunks, lines) for part in _cut_apart(block, before, after, chunks))
        blocks = tuple(
            block
            for part in parts
            if lines[0][part[0] : part[1]] != lines[1][part[2] : part[3]]
            for block in _by_statement(part, before, after, lines)
        )
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
        """More regions to revert because of undefined names: those with a definition, else all users.

        Of several definitions, those in the function that lacks the name are needed.
        """
        old = frozenset(old)
        needed: set[int] = set()
        for name in self.flaws(old):
            using = re.compile(rf"\b{name}\b")
            bring = {i for i, (text, _) in enumerate(self.texts) if defines(text, name)} - old
            keep = {i for i, (_, text) in enumerate(self.texts) if name in text and using.search(text)} - old
            lacking = {self.function_of(i) for i in old if using.search(self.texts[i][0])}
            needed |= {i for i in bring if self.function_of(i) in lacking} or bring or keep
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
        rf"\b(?:def|class)\s+{name}\b|\bdef\s+\w+\(.*\b{name}\b"
        rf"|\bimport\b.*\b{name}\b|^[ \t]*{name},?[ \t]*\)?[ \t]*(?:#.*)?$"
        # Alone, or one of several targets of an assignment.
        rf"|^[ \t]*(?:[\w.*]+, *)*(?:self\.|cls\.)?{name}(?:, *[\w.*]+)*\s*(?::|=(?!=))"
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


def function_at(source: str, line: int) -> str:
    """The qualified name of the function around a line, counted from 1; "" if there is none."""
    name = _enclosing(source, line - 1, line)
    return name if name in functions(source) else ""


@functools.lru_cache(maxsize=_MOST_TEXTS)
def functions(source: str) -> frozenset[str]:
    """The qualified names of the functions in a Python text."""
    return frozenset(definition.qualname for definition in outline_of(source).definitions if definition.is_function)


_OTHER, _IMPORT, _DEFINITION = "", "import ", "def "


@frozen
class _Piece:
    """The lines [first, last) of a text, counted from 0. Pieces of the same `kind` correspond to each other."""

    first: int
    last: int
    kind: str


def _chunks(before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]) -> tuple[list[_Piece], list[_Piece]]:
    """Split both texts into definitions, whose kind is their name, and the lines between them, whose kind is the line.

    A class that both texts have is split, too. A renamed definition has its older name.
    """
    names = [frozenset(definition.qualname for definition in outline_of(text).definitions) for text in (before, after)]
    old, new = (list(_definition_pieces(text, other)) for text, other in ((before, names[1]), (after, names[0])))
    removed, added = (
        {
            f"{piece.kind}.": "".join(side[piece.first : piece.last]).encode()
            for piece in pieces
            if piece.kind.removeprefix(_DEFINITION).partition("#")[0] not in other
        }
        for pieces, side, other in ((old, lines[0], names[1]), (new, lines[1], names[0]))
    )
    renames = renamed(removed, added) if removed and added else {}
    new = [evolve(piece, kind=renames.get(f"{piece.kind}.", f"{piece.kind}.")[:-1]) for piece in new]
    return _with_lines(old, lines[0]), _with_lines(new, lines[1])


def _definition_pieces(source: str, both: frozenset[str]) -> Iterator[_Piece]:
    """The functions and methods of a text, and its classes if their names are not in `both`, decorators included.

    Definitions in functions are left out. Those with the same name are numbered.
    """
    counts: Counter[str] = Counter()
    reached = 0
    for definition in sorted(outline_of(source).definitions, key=lambda definition: definition.first):
        name = definition.qualname
        if definition.first > reached and (definition.is_function or name not in both):
            yield _Piece(definition.first - 1, definition.last, f"{_DEFINITION}{name}#{counts[name]}")
            counts[name] += 1
            reached = definition.last


def _with_lines(definitions: list[_Piece], lines: Sequence[str]) -> list[_Piece]:
    """Definitions, and the lines between them."""
    chunks: list[_Piece] = []
    reached = 0
    for piece in (*definitions, _Piece(len(lines), len(lines), _OTHER)):
        chunks += (_Piece(number, number + 1, lines[number]) for number in range(reached, piece.first))
        if piece.last > piece.first:
            chunks.append(piece)
        reached = piece.last
    return chunks


def _by_definition(old: list[_Piece], new: list[_Piece], lines: tuple[Sequence[str], Sequence[str]]) -> Iterator[Block]:
    """The blocks in which the chunks of both texts differ, and those inside of definitions that correspond."""
    ends = len(lines[0]), len(lines[1])
    i = k = 0
    changed = changed_blocks([piece.kind for piece in old], [piece.kind for piece in new])
    for first, last, start, end in (*changed, (len(old), len(old), len(new), len(new))):
        for was, now in zip(old[i:first], new[k:start], strict=True):
            inside = changed_blocks(lines[0][was.first : was.last], lines[1][now.first : now.last])
            yield from ((a + was.first, b + was.first, c + now.first, d + now.first) for a, b, c, d in inside)
        if (first, start) != (last, end):
            a = old[first].first if first < len(old) else ends[0]
            c = new[start].first if start < len(new) else ends[1]
            yield a, old[last - 1].last if last > first else a, c, new[end - 1].last if end > start else c
        i, k = last, end


def _cut_apart(block: Block, before: str, after: str, chunks: tuple[list[_Piece], list[_Piece]]) -> Iterator[Block]:
    """Split a block at imports, decorators, assignments, and definitions that only one text has in this place."""
    a, b, c, d = block
    if max(b - a, d - c) < 2:
        yield block
        return
    yield from _aligned(_pieces(before, (a, b), chunks[0]), _pieces(after, (c, d), chunks[1]), block)


def _by_statement(block: Block, before: str, after: str, lines: tuple[Sequence[str], Sequence[str]]) -> Iterator[Block]:
    """Split a block that only adds, or only removes, several whole statements."""
    a, b, c, d = block
    if (a == b) == (c == d):
        yield block
        return
    source, rows, (first, last) = (after, lines[1], (c, d)) if a == b else (before, lines[0], (a, b))
    ends, loose = [first], set(range(first, last))
    statements = outline_of(source).statements
    for top, end in itertools.islice(statements, bisect_left(statements, (first + 1,)), None):
        start = top - 1
        if start >= last:
            break
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
    pieces = (*gone, *come)
    are_imports = all(piece.kind.startswith(_IMPORT) for piece in pieces)
    return are_imports or any(piece.kind.startswith(_DEFINITION) for piece in pieces)


def _pieces(source: str, ends: tuple[int, int], chunks: list[_Piece]) -> list[_Piece]:
    """Split the lines [first, last) into imports, decorators, assignments, definitions, and the lines between them.

    Empty lines belong to the previous piece.
    """
    first, last = ends
    lines = lines_of(source)
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

    wholes = (*_within(chunks, ends, _DEFINITION), *_within(_own_pieces(source), ends))
    for piece in sorted(wholes, key=lambda piece: (piece.first, -piece.last)):
        if piece.first >= reached:
            pieces.append(_Piece(rest(piece.first), piece.last, piece.kind))
            reached = piece.last
    if (start := rest(last)) < last:
        pieces.append(_Piece(start, last, _OTHER))
    return pieces


def _within(pieces: Sequence[_Piece], ends: tuple[int, int], kind: str = "") -> Iterator[_Piece]:
    """The pieces of a kind between two lines, of pieces in order."""
    for number in range(bisect_left(pieces, ends[0], key=lambda piece: piece.first), len(pieces)):
        if pieces[number].last > ends[1]:
            return
        if pieces[number].kind.startswith(kind):
            yield pieces[number]


@functools.lru_cache(maxsize=16)
def _own_pieces(source: str) -> tuple[_Piece, ...]:
    """The imports, decorators and assignments of a text that share no line with an earlier one, in order."""
    outline = outline_of(source)
    pieces = [
        _Piece(statement.first - 1, statement.last, f"{_IMPORT}{statement.module}") for statement in outline.imports
    ]
    pieces += [_Piece(first - 1, last, f"@{decorator}") for first, last, decorator in outline.decorators]
    pieces += [_Piece(first - 1, last, f"{target} =") for first, last, target in outline.assignments]
    ordered = sorted(pieces, key=lambda piece: piece.first)
    return tuple(piece for n, piece in enumerate(ordered) if n == 0 or piece.first >= ordered[n - 1].last)


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
