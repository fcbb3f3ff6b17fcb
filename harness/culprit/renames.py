"""Detects renamed files: pairs of a removed and an added file that are the same file. Pure.

As in git, files with equal contents are paired first, then those with the most similar lines.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALIKE = 0.5  # least share of equal lines in a renamed file, as in git
_MOST_PAIRS = 10_000


def renamed(removed: Mapping[str, bytes], added: Mapping[str, bytes]) -> dict[str, str]:
    """Map the newer paths of renamed files to the older ones, given the contents of removed and added files by path.

    Empty files are never paired. Files are compared by lines only if they have the same extension, and not at all if
    there are more than 10,000 pairs.
    """
    found: dict[str, str] = {}
    by_content = {content: path for path, content in removed.items() if content.strip()}
    for newer, content in added.items():
        if (older := by_content.pop(content, None)) is not None:
            found[newer] = older
    gone = {path: _lines(removed[path]) for path in removed if path not in found.values()}
    come = {path: _lines(added[path]) for path in added if path not in found}
    if len(gone) * len(come) > _MOST_PAIRS:
        return found
    likeness = sorted(
        (-_likeness(gone[older], come[newer]), older, newer)
        for older in gone
        for newer in come
        if older.rpartition(".")[2] == newer.rpartition(".")[2]
    )
    for minus, older, newer in likeness:
        if -minus >= _ALIKE and newer not in found and older not in found.values():
            found[newer] = older
    return found


def _lines(content: bytes) -> Counter[bytes]:
    return Counter(line for line in content.splitlines() if line.strip())


def _likeness(one: Counter[bytes], other: Counter[bytes]) -> float:
    """The number of common lines relative to the longer text, 0 to 1."""
    longest = max(one.total(), other.total())
    return (one & other).total() / longest if longest else 0.0
