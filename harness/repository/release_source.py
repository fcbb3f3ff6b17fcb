"""Finds the commit that a release was built from: its tag, compared with the files of its wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.errors import BadRepository
from harness.repository.layout import Layout, find_layout
from harness.repository.tags import tagged_versions, tags_of

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping

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
        """How the wheel and its tag differ."""
        layout, told = self.layout, []
        if layout.elsewhere:
            told.append(
                f"{self.version}: tag {self.tag} is not the commit of the wheel, "
                f"which has {_few(layout.elsewhere)} from another one"
            )
        if layout.changed:
            told.append(f"{self.version}: the wheel has its own {_few(layout.changed)}, other than tag {self.tag}")
        if layout.generated:
            told.append(f"{self.version}: only the wheel, not tag {self.tag}, has {_few(layout.generated)}")
        return tuple(told)


def find_source(repository: Repository, project: str, version: str, wheel: Mapping[str, str]) -> ReleaseSource:
    """Return the tag of a release that matches its wheel best; `wheel` maps installed paths to git's hashes.

    Raises `BadRepository` if no tag names the release, or none has the package's files.
    """
    all_tags = repository.tags()
    tags = tags_of(version, all_tags, project)
    if not tags:
        some = ", ".join(sorted(all_tags)[-3:]) or "none"
        raise BadRepository(
            f"{repository.folder} has no tag for {project} {version} (its tags: {some})",
            hint=repository.what_is_missing() or "run git fetch --tags, or choose another clone with --git",
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
    known = repository.known(wheel[path] for path in best.layout.changed)
    return evolve(best, layout=best.layout.with_sources(wheel, known))


def tagged_up_to(repository: Repository, project: str, sha: str) -> dict[Version, tuple[str, str]]:
    """Return the releases of a project with a tag up to the date of a commit: version -> tag and its commit's hash.

    Releases are often tagged on separate branches, so dates count, not ancestry. Raises `BadRepository`.
    """
    tags = repository.tags()
    named = {version: of[0] for version, of in tagged_versions(tags, project).items()}
    dates = repository.dates([sha, *(tags[tag] for tag in named.values())])
    return {
        version: (tag, tags[tag])
        for version, tag in named.items()
        if tags[tag] in dates and dates[tags[tag]] <= dates[sha]
    }


def newest_tag(
    repository: Repository, project: str, sha: str, released: Container[Version] | None = None
) -> tuple[str, str] | None:
    """Return the tag of the newest release up to a commit, and the tag's commit; None if there is no such tag.

    A pre-release counts only if there is no other release. `released` are the versions that were released (None: all
    that have a tag). Raises `BadRepository`.
    """
    tagged = tagged_up_to(repository, project, sha)
    found = [version for version in tagged if released is None or version in released]
    final = [version for version in found if not version.is_prerelease]
    return tagged[max(final or found)] if found else None


def tree_of(repository: Repository, sha: str) -> dict[str, str]:
    """Return a commit's regular files: path -> hash of the content."""
    return {path: entry.blob for path, entry in repository.tree(sha).items() if entry.is_regular}


def _few(paths: Collection[str]) -> str:
    named = ", ".join(list(paths)[:3])
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more files"
