"""Renamed files: the pairs of removed and added files that are one file under two names. Pure.

As in version control: equal contents first, then the most similar by lines.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALIKE = 0.5  # share of equal lines from which git, too, speaks of a rename
_MOST_PAIRS = 10_000


def renamed(removed: Mapping[str, bytes], added: Mapping[str, bytes]) -> dict[str, str]:
    """Newer path -> older path, from the contents of removed and added files by path.

    Empty files are never paired. With more than 10,000 pairs to compare, only equal contents count.
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
    """Equal lines in both as a share of the longer one, 0 to 1."""
    longest = max(one.total(), other.total())
    return (one & other).total() / longest if longest else 0.0
