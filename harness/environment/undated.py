"""Files without an upload time: uv's cap by date drops them, so that the dates of another index cap their projects."""

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

# What uv takes from an index of PyTorch's own once a backend is named (uv: "Using uv with PyTorch", automatic backend
# selection), and what these bring along from there.
_OF_A_TORCH_BACKEND = re.compile(r"torch|torch(audio|vision|text|data)|(pytorch-)?triton(-.*)?|nvidia-.*")
_PAGES_AT_ONCE = 8  # pages of an index come slowly, and each is waited for


def of_a_torch_backend(projects: Collection[str]) -> frozenset[str]:
    """Of some projects those that come from an index without upload times once uv is told a torch backend."""
    return frozenset(name for name in projects if _OF_A_TORCH_BACKEND.fullmatch(name))


def caps(projects: Collection[str], index: Index, as_of: datetime) -> tuple[str, ...]:
    """Constraints that leave of each project what there was on a day, by the dates that some index has of it.

    A project of which no index has a date is not capped: there is nothing to go by. Raises `NoNetwork`.
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
        # A version that no index has a date of is taken for newer where its number is.
        yield f"{project}<={newest}"
    for release in releases:
        if release.uploaded and release.uploaded > as_of and (newest is None or release.version < newest):
            yield f"{project}!={release.version}"
