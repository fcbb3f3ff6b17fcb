"""Constraints for projects whose files have no upload time, from the dates of another index."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from harness.errors import UnknownProject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from harness.environment.index import Index
    from harness.model import Release

# What uv takes from PyTorch's own index if a backend is named (uv: "Using uv with PyTorch", automatic backend
# selection), and what these packages require from there.
_OF_A_TORCH_BACKEND = re.compile(r"torch|torch(audio|vision|text|data)|(pytorch-)?triton(-.*)?|nvidia-.*")
_PAGES_AT_ONCE = 8  # index pages are slow, so fetch several at once


def of_a_torch_backend(projects: Collection[str]) -> frozenset[str]:
    """The projects that come from an index without upload times if a torch backend is set."""
    return frozenset(name for name in projects if _OF_A_TORCH_BACKEND.fullmatch(name))


def caps(projects: Collection[str], index: Index, as_of: datetime) -> tuple[str, ...]:
    """Constraints that limit each project to what existed on a day, by the dates that any index has.

    A project without any date is not limited. Raises `NoNetwork`.
    """

    def of_one(project: str) -> tuple[str, ...]:
        try:
            return tuple(_caps(project, index.releases(project), as_of))
        except UnknownProject:
            return ()

    with ThreadPoolExecutor(_PAGES_AT_ONCE, thread_name_prefix="pages") as pool:
        return tuple(cap for found in pool.map(of_one, sorted(projects)) for cap in found)


def _caps(project: str, releases: Collection[Release], as_of: datetime) -> Iterator[str]:
    there = [release.version for release in releases if release.uploaded and release.uploaded <= as_of]
    newest = max((version for version in there if not version.is_prerelease), default=None)
    if newest is not None:
        # A version without a date counts as newer if its number is higher.
        yield f"{project}<={newest}"
    for release in releases:
        if release.uploaded and release.uploaded > as_of and (newest is None or release.version < newest):
            yield f"{project}!={release.version}"
