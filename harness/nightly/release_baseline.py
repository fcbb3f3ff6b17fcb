"""Finds the newest releases before a cell's commits, as the baseline of a cell that was never good.

So a break on `main` is found in the first night, before it is released.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import BadRepository, UnknownProject
from harness.model import normalized_name
from harness.model.words import listed
from harness.repository.git import Repository
from harness.repository.releases import newest_tag

if TYPE_CHECKING:
    from packaging.version import Version

    from harness.environment import Index
    from harness.matrix import Cell


@frozen
class NewestReleases:
    """The tag of each project's newest release and the hash of its commit; `why_not` says why there is none."""

    tags: dict[str, str]
    commits: dict[str, str]
    why_not: str = ""

    def __str__(self) -> str:
        return listed(f"{project} {tag}" for project, tag in self.tags.items())


def newest_releases(cell: Cell, index: Index) -> NewestReleases:
    """Find the newest release of each project of which a cell takes a commit, with a tag no later than that commit.

    Raises `NoNetwork`.
    """
    tags, commits = {}, {}
    for commit in cell.commits:
        try:
            found = newest_tag(
                Repository.open(Path(commit.folder)), commit.project, commit.sha, _released(index, commit.project)
            )
        except BadRepository as error:
            return NewestReleases({}, {}, error.message)
        if found is None:
            return NewestReleases({}, {}, f"{commit.project} has no release with a tag up to {commit.value}")
        tags[commit.project], commits[commit.project] = found
    if all(commits[commit.project] == commit.sha for commit in cell.commits):
        named = listed(f"{project} {tag}" for project, tag in tags.items())
        return NewestReleases({}, {}, f"the newest release, {named}, is this commit")
    return NewestReleases(tags, commits)


def _released(index: Index, project: str) -> frozenset[Version] | None:
    """Return the versions of a project on the index, None if it has no such project."""
    try:
        return frozenset(release.version for release in index.releases(normalized_name(project)))
    except UnknownProject:
        return None
