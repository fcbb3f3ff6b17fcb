"""Refining: finds the lines inside a changed region that make the difference, without renamed or moved ones.

A region often has more changes than the one that matters: a function moved, or names in a block changed. So its older
lines, with the names of the newer ones, replace the newer lines. What then still differs is reverted alone and run.
"""

from __future__ import annotations

import ast
import difflib
import functools
import keyword
import re
import textwrap
from collections.abc import Sequence

from attrs import evolve, frozen

from harness.culprit.edits import Edits, Unit, Units, exchanged_in_words, places, versions
from harness.culprit.proofs import Trials
from harness.culprit.regions import FileDifference, lines_of
from harness.culprit.sides import Side
from harness.culprit.subsets import Choices, Fewest
from harness.culprit.syntax import Function, parsed
from harness.model import Change, Mixture, Verdict
from harness.model.culprit import Proof, Region
from harness.probing import Probe

_ALIKE = 0.4
_MOST_PAIRS = 4_000_000  # of words that are compared, which takes a second
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|[^\s\w]")


@frozen
class Refined:
    """The lines that make the difference as units of edits of their own, the proof, and the number of runs."""

    edits: Edits
    units: Units
    proof: Proof
    runs: int

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions of the lines."""
        return self.edits.regions(self.units)


def refined(
    trials: Trials,
    edits: Edits,
    core: Units,
    along: Units,
    *,
    base: Side,
    expected: Verdict,
    packages: Sequence[Change],
) -> Refined | None:
    """Find the lines inside the regions of `core` whose reversal alone removes the difference.

    `along` are the edits that the search reverted with `core`. The lines are reverted in the environment of the side
    `base`, whose verdict then should be `expected`. Returns None if the lines are not fewer, or not sufficient.
    """
    texts = {path: difference for path in _paths(edits, core) if (difference := _laid_over(edits, core | along, path))}
    laid = evolve(edits, differences=texts, homes={}, wholes={})
    lines = sum(d - c for difference in texts.values() for _, _, c, d in difference.blocks)
    whole = sum(d - c for unit in core for _, _, c, d in (edits.block(unit),))
    is_elsewhere = not set(texts) <= {edits.path_of(unit) for unit in core}
    if not laid.all or (lines >= whole and not is_elsewhere and len(laid.all) <= len(core)):
        return None

    def probe_of(units: Units) -> Probe:
        label = f"{places(laid.regions(units), newer=False)} as in {versions(packages, newer=False)}"
        files = laid.files(units, newer_base=True)
        return trials.mixed(base, Mixture(files, f"{label}, with the newer names"))

    def sentence(units: Units) -> str:
        return exchanged_in_words(packages, places(laid.regions(units), newer=False), newer_base=True)

    proof = trials.proof(sentence(laid.all), probe_of(laid.all), expected)
    if not proof.holds:
        return None
    if len(laid.all) == 1:
        return Refined(laid, laid.all, proof, 1)
    choices = Choices(
        dict.fromkeys(sorted(laid.all), 1.0),
        probe_of,
        lambda units: f"reverted: {places(laid.regions(units))}",
        parts=[frozenset({unit}) for unit in sorted(laid.all)],
    )
    reduced = Fewest(trials, expected, choices, until=trials.until).run()
    if reduced.shown is not None:
        proof = trials.proof_by(reduced.shown, sentence(reduced.units), probe_of(reduced.units), expected)
    return Refined(laid, reduced.units, proof, 1 + reduced.runs)


def _paths(edits: Edits, core: Units) -> list[str]:
    """The newer files that have one of the regions, or to which a function in them may have moved."""
    names = {edits.path_of(unit) for unit in core if edits.is_region(unit)}
    moved = {name for unit in core for name in _gone(edits, unit)}
    for path in (*edits.differences, *edits.wholes):
        if moved and path.endswith(".py") and moved & _definitions(_newer(edits, path)).keys():
            names.add(path)
    return sorted(names)


def _newer(edits: Edits, path: str) -> str:
    if path in edits.differences:
        return edits.differences[path].after
    return (edits.after.read(path) or b"").decode(errors="replace")


def _laid_over(edits: Edits, units: Units, path: str) -> FileDifference | None:
    """Replace the regions and the moved functions in the newer text of a file with their older lines, and compare.

    Returns the difference between that text and the newer one; None if nothing was replaced.
    """
    newer = _newer(edits, path)
    lines = list(lines_of(newer))
    replaced: list[tuple[int, int, list[str]]] = []
    gone = {name: text for unit in units for name, text in _gone(edits, unit).items()}
    for name, (first, last, text) in _definitions(newer).items():
        if name in gone and gone[name] != text and _likeness(gone[name], text) >= _ALIKE:
            indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
            older = textwrap.indent(gone[name], indent)
            replaced.append((first, last, _as_today(list(lines_of(older)), lines[first:last])))
    for unit in sorted(units):
        if not edits.is_region(unit) or edits.path_of(unit) != path:
            continue
        a, b, c, d = edits.block(unit)
        inside = any(first < d and c < last for first, last, _ in replaced)
        if not inside and a < b and c < d:
            old = list(lines_of(edits.differences[path].before)[a:b])
            replaced.append((c, d, _as_today(old, lines[c:d])))
    if not replaced:
        return None
    older_lines = list(lines)
    for first, last, old in sorted(replaced, reverse=True, key=lambda row: row[0]):
        older_lines[first:last] = old
    return _cut_by_line(FileDifference.between(path, "".join(older_lines), newer))


def _gone(edits: Edits, unit: Unit) -> dict[str, str]:
    """The functions that lie completely in the older lines of a region, by name."""
    if not edits.is_region(unit):
        return {}
    a, b, _, _ = edits.block(unit)
    before = edits.differences[edits.path_of(unit)].before
    return {name: text for name, (first, last, text) in _definitions(before).items() if a <= first and last <= b}


def _cut_by_line(difference: FileDifference) -> FileDifference:
    """Split regions with equally many lines before and after into single lines, if the lines are pairwise similar."""
    before, after = lines_of(difference.before), lines_of(difference.after)
    blocks: list[tuple[int, int, int, int]] = []
    for a, b, c, d in difference.blocks:
        pairs = list(zip(before[a:b], after[c:d], strict=False))
        if b - a == d - c > 1 and all(_likeness(old, new) >= _ALIKE for old, new in pairs):
            blocks += [(a + i, a + i + 1, c + i, c + i + 1) for i, (old, new) in enumerate(pairs) if old != new]
        else:
            blocks.append((a, b, c, d))
    return evolve(difference, blocks=tuple(blocks))


def _as_today(old: list[str], new: list[str]) -> list[str]:
    """Return older lines with the names that the newer lines have in the same places; unchanged if there are too many.

    A line of a generated file may have many thousand names.
    """
    older, newer = _TOKEN.findall("".join(old)), _TOKEN.findall("".join(new))
    of_old, of_new = set(older), set(newer)
    begin = _common(older, newer)
    end = _common(older[begin:][::-1], newer[begin:][::-1])
    older, newer = older[begin : len(older) - end], newer[begin : len(newer) - end]
    if len(older) * len(newer) > _MOST_PAIRS:
        return old
    renamed: dict[str, str] = {}
    for tag, i, j, k, m in difflib.SequenceMatcher(None, older, newer, autojunk=False).get_opcodes():
        is_renamed = tag == "replace" and j - i == m - k
        if is_renamed and not any(map(keyword.iskeyword, (*older[i:j], *newer[k:m]))):
            for was, now in zip(older[i:j], newer[k:m], strict=True):
                if was.isidentifier() and now.isidentifier() and was not in of_new and now not in of_old:
                    renamed.setdefault(was, now)
    return [_TOKEN.sub(lambda match: renamed.get(match[0], match[0]), line) for line in old]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of words that two lists have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (word, same) in pairs if word != same), min(len(first), len(second)))


@functools.lru_cache(maxsize=32)
def _definitions(source: str) -> dict[str, tuple[int, int, str]]:
    """The functions of a text by name: their lines [first, last), counted from 0, and their dedented source.

    Empty if the text is not valid Python. Of functions with the same name, only one is included.
    """
    tree = parsed(source)
    lines = lines_of(source)
    functions: dict[str, tuple[int, int, str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Function):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            functions.setdefault(node.name, (first, last, textwrap.dedent("".join(lines[first:last]))))
    return functions


def _likeness(first: str, second: str) -> float:
    words, others = first.split(), second.split()
    if len(words) * len(others) > _MOST_PAIRS:
        return float(first == second)
    return difflib.SequenceMatcher(None, words, others, autojunk=False).ratio()
