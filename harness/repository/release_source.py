"""Finds the commit that a release was built from: its tag, compared with the files of its wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import BadRepository
from harness.repository.layout import Layout, find_layout
from harness.repository.tags import tagged_version, tags_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.version import Version

    from harness.repository.git import Repository


@frozen
class ReleaseSource:
    """A release in its repository: the tag, its commit's hash, and how the wheel's paths map to the repository's."""

    version: str
    tag: str
    sha: str
    layout: Layout

    @property
    def notes(self) -> tuple[str, ...]:
        """How the wheel and its tag differ; these files stay as they are in the wheel."""
        told = []
        if self.layout.changed:
            told.append(f"{self.version}: {_few(self.layout.changed)} in the wheel differ from tag {self.tag}")
        if self.layout.generated:
            told.append(f"{self.version}: {_few(self.layout.generated)} in the wheel are not in tag {self.tag}")
        return tuple(told)


def find_source(repository: Repository, project: str, version: str, wheel: Mapping[str, str]) -> ReleaseSource:
    """The tag of a release that matches its wheel best; `wheel` maps installed paths to git's hashes.

    Raises `BadRepository` if no tag names the release, or none has the package's files.
    """
    all_tags = repository.tags()
    tags = tags_of(version, all_tags, project)
    if not tags:
        some = ", ".join(sorted(all_tags)[-3:]) or "none"
        raise BadRepository(
            f"{repository.folder} has no tag for {project} {version} (its tags: {some})",
            hint="run git fetch --tags for new ones, or choose another clone with --git",
        )
    found = [
        ReleaseSource(version, tag, all_tags[tag], find_layout(wheel, tree_of(repository, all_tags[tag])))
        for tag in tags
    ]
    best = min(found, key=lambda source: len(source.layout.changed) + len(source.layout.generated))
    if not best.layout.found:
        raise BadRepository(
            f"{repository.folder} has tag {best.tag}, but no files of {project} {version} in it",
            hint="is this the right repository? --git chooses another",
        )
    return best


def tagged_up_to(repository: Repository, project: str, sha: str) -> dict[Version, tuple[str, str]]:
    """The releases of a project that have a tag not newer than a commit: version -> tag and its commit's hash.

    Releases are often tagged on branches of their own, so dates count, not ancestry. Raises `BadRepository`.
    """
    named = [
        (version, tag, of)
        for tag, of in sorted(repository.tags().items(), key=lambda item: (len(item[0]), item[0]))
        if (version := tagged_version(tag, project)) is not None
    ]
    dates = repository.dates([sha, *(of for _, _, of in named)])
    found: dict[Version, tuple[str, str]] = {}
    for version, tag, of in named:
        if of in dates and dates[of] <= dates[sha]:
            found.setdefault(version, (tag, of))
    return found


def newest_tag(repository: Repository, project: str, sha: str) -> tuple[str, str] | None:
    """The tag of the newest release up to a commit, and the hash of its commit; None if no release has such a tag.

    A pre-release counts only if there is nothing else. Raises `BadRepository`.
    """
    found = tagged_up_to(repository, project, sha)
    final = [version for version in found if not version.is_prerelease]
    return found[max(final or found)] if found else None


def tree_of(repository: Repository, sha: str) -> dict[str, str]:
    """A commit's regular files, path -> hash of the content."""
    return {path: entry.blob for path, entry in repository.tree(sha).items() if entry.is_regular}


def _few(paths: tuple[str, ...]) -> str:
    named = ", ".join(paths[:3])
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more files"
