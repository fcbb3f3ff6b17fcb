"""Matches tags to releases: `v1.2.3`, `1.2.3`, `name-1.2.3`, `release/1.2.3`, `rel_1_2_3`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile(r"\d+(?:[._]\d+)*.*$")


def tagged_version(tag: str, project: str) -> Version | None:
    """The version that a tag of this project names, None for no version or another project."""
    match = _NUMBER.search(tag)
    # The first digits may be part of the project's name ("py3dns-4.0"): each later start is tried too.
    while match is not None:
        label = tag[: match.start()]
        if _is_label(label, project):
            for text in (match.group(), match.group().replace("_", ".")):
                try:
                    return Version(text)
                except InvalidVersion:
                    continue
        match = _NUMBER.search(tag, match.start() + 1)
    return None


def tags_of(version: str, tags: Iterable[str], project: str) -> tuple[str, ...]:
    """The tags that name a version of a project, those with the plainest label first."""
    wanted = Version(Version(version).public)
    found = [tag for tag in tags if tagged_version(tag, project) == wanted]
    return tuple(sorted(found, key=lambda tag: (len(tag), tag)))


def _is_label(label: str, project: str) -> bool:
    """Whether the text before a version is only a label, such as `v`, `release/` or the project's name."""
    words = [word for word in re.split(r"[^a-z0-9]+", label.lower()) if word]
    own = set(normalized_name(project).split("-")) | {normalized_name(project).replace("-", "")}
    return all(
        word in own or word in ("v", "version", "rel", "release", "releases", "ver", "tag", "tags") for word in words
    )
