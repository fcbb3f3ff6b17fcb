"""Finds the commits that changed given lines, with git blame for added lines and git log -S for removed ones.

This is evidence: it decides which commit runs first, never which one is the culprit.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import BadRepository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.repository.git import Repository

_HEADER = re.compile(r"^([0-9a-f]{40,64}) \d+ \d+")
_LINES_SEARCHED = 3
_SHORTEST = 8  # characters of a removed line that is searched for


@frozen
class ChangedLines:
    """Lines of one file that a change added (`after`, first and last line at the newer end) or removed (`removed`).

    `path` is the file's path in the repository; `after` is None if nothing was added.
    """

    path: str
    after: tuple[int, int] | None = None
    removed: tuple[str, ...] = ()


def commits_behind(repository: Repository, older: str, newer: str, changes: Iterable[ChangedLines]) -> tuple[str, ...]:
    """Return the commits (hashes) after `older` up to `newer` that made these changes, those with most of them first.

    Renames are followed. Raises `BadRepository`.
    """
    votes: Counter[str] = Counter()
    for change in changes:
        if change.after is not None:
            votes.update(_blamed(repository, older, newer, change.path, change.after))
        for line in _telling(change.removed):
            votes.update(_touching(repository, older, newer, change.path, line))
    position = {sha: i for i, sha in enumerate(repository.lines("rev-list", "--topo-order", newer, f"^{older}"))}
    inside = [sha for sha in votes if sha in position]
    return tuple(sorted(inside, key=lambda sha: (-votes[sha], position[sha])))


def _blamed(repository: Repository, older: str, newer: str, path: str, lines: tuple[int, int]) -> Counter[str]:
    """How many of these lines come from each commit (git blame)."""
    first, last = lines
    try:
        answer = repository.lines(
            "blame",
            "--porcelain",
            "--no-textconv",
            "-w",
            "-M",
            "-L",
            f"{first},{last}",
            f"{older}..{newer}",
            "--",
            path,
        )
    except BadRepository:  # the tag lacks the file or has fewer lines, because the wheel differs from it
        return Counter()
    return Counter(match.group(1) for line in answer if (match := _HEADER.match(line)))


def _touching(repository: Repository, older: str, newer: str, path: str, line: str) -> list[str]:
    """The commits that changed how often a line occurs in a file, or else in any file (git log -S)."""
    search = ("log", "--format=%H", "--no-textconv", "--no-ext-diff", f"-S{line}", newer, f"^{older}")
    return repository.lines(*search, "--", path) or repository.lines(*search)


def _telling(removed: tuple[str, ...]) -> list[str]:
    """The longest removed lines, because they occur least often elsewhere."""
    stripped = dict.fromkeys(line.strip() for line in removed)
    long = [line for line in stripped if len(line) >= _SHORTEST]
    return sorted(long, key=len, reverse=True)[:_LINES_SEARCHED]
