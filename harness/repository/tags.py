"""Matches tags to releases: `v1.2.3`, `1.2.3`, `name-1.2.3`, `release/1.2.3`, `rel_1_2_3`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile(r"\d+(?:[._]\d+)*.*$")
_ENDING = re.compile(r"[._-](final|ga|release)$", re.IGNORECASE)
# Words before a version that name no project, such as "release" or the name of a folder in the repository.
_LABELS = frozenset(
    {"v", "version", "rel", "release", "releases", "ver", "tag", "tags", "r"}
    | {"python", "py", "package", "packages", "pkg", "lib", "libs", "project", "projects"}
)


def tags_of(version: str, tags: Iterable[str], project: str) -> tuple[str, ...]:
    """Return the tags of a project's version: those with its full name, without a name, with a part of its name.

    Of equal ones the shortest comes first. In a repository with more than one project, a tag without a name may be that
    of another project, so a full name comes first.
    """
    return tagged_versions(tags, project).get(Version(Version(version).public), ())


def tagged_versions(tags: Iterable[str], project: str) -> dict[Version, tuple[str, ...]]:
    """Map the versions of a project that have tags to their tags, in the order of `tags_of`."""
    found: dict[Version, list[tuple[int, int, str]]] = {}
    for tag in tags:
        if (read := _read(tag, project)) is not None:
            version, rank = read
            found.setdefault(version, []).append((rank, len(tag), tag))
    return {version: tuple(tag for *_, tag in sorted(ranked)) for version, ranked in found.items()}


def _read(tag: str, project: str) -> tuple[Version, int] | None:
    """The version of a tag and how its label names the project: 0 in full, 1 not at all, 2 in part."""
    text = _ENDING.sub("", tag)
    match = _NUMBER.search(text)
    # The first digits may be part of the project's name ("py3dns-4.0"), so try each number as the start.
    while match is not None:
        rank = _rank(text[: match.start()], project)
        if rank is not None:
            for number in (match.group(), match.group().replace("_", ".")):
                try:
                    return Version(number), rank
                except InvalidVersion:
                    continue
        match = _NUMBER.search(text, match.start() + 1)
    return None


def _rank(label: str, project: str) -> int | None:
    """How the text before a version names a project (see `_read`), or None if it names something else."""
    words = [word for word in re.split(r"[^a-z0-9]+", label.lower()) if word]
    name = normalized_name(project)
    own = {*name.split("-"), name.replace("-", "")}
    if any(word not in own and word not in _LABELS for word in words):
        return None
    named = {word for word in words if word in own}
    if {*name.split("-")} <= named or name.replace("-", "") in named:
        return 0
    return 2 if named else 1
