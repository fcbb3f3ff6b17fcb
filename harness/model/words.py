"""Formats numbers and lists for sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], most: int = 3) -> str:
    """Join up to `most` items ("a, b and c"); if there are more, the first ones and a count ("a, b and 7 more")."""
    names = list(items)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def listed_in_order(releases: Iterable[tuple[str, bool]], most: int = 6) -> str:
    """Join the releases marked True; three or more in sequence become "4.51.0 to 4.51.9 (10 releases)"."""
    runs: list[list[str]] = [[]]
    for release, is_meant in releases:
        if is_meant:
            runs[-1].append(release)
        elif runs[-1]:
            runs.append([])
    told: list[str] = []
    for run in runs:
        told += [f"{run[0]} to {run[-1]} ({len(run)} releases)"] if len(run) > 2 else run
    return listed(told, most)


def ranged(releases: Iterable[str], most: int = 3) -> str:
    """Join up to `most` releases; if there are more, the first and the last (in the given order) and their number."""
    names = list(releases)
    return f"{names[0]} to {names[-1]} ({len(names)} releases)" if len(names) > most else listed(names, most)


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural if needed: "1 cell", "3 cells"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
