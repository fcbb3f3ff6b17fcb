"""Numbers and lists in words, the same in every sentence."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], most: int = 3) -> str:
    """Up to `most` items by name ("a, b and c"); of more the first ones, and how many more ("a, b and 7 more")."""
    names = list(items)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 cell", "3 cells"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
