"""Looks up the branches, tags and hashes on package axes, in the repositories that a matrix names."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.commit import open_repository
from harness.errors import BadRepository
from harness.model import normalized_name
from harness.model.culprit import PinnedCommit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from harness.repository.git import Repository


@frozen
class CommitLookup:
    """Looks up commits by project and revision; each repository is opened, and fetched if it is a URL, only once.

    `repositories` maps projects (normalised) to a clone or a URL, `cache` keeps clones. A branch is read as it was at
    `until` (None: as it is now). `known` has full hashes that were looked up before, by "project revision".
    """

    repositories: Mapping[str, str]
    cache: Path
    until: datetime | None = None
    known: Mapping[str, str] = field(factory=dict)
    _opened: dict[str, Repository] = field(factory=dict, init=False, eq=False, repr=False)

    def find(self, project: str, revision: str) -> PinnedCommit:
        """Return the commit that a revision of a project names. Raises `BadRepository` and `NoNetwork`."""
        name = normalized_name(project)
        repository = self._opened.get(name)
        if repository is None:
            repository = self._opened[name] = self._open(name)
        known = self.known.get(known_as(project, revision))
        if known is not None:
            commit = repository.commit(known)
        elif self.until is not None:
            commit = repository.newest(revision, self.until)
        else:
            commit = repository.commit(revision)
        return PinnedCommit(
            project=project,
            revision=revision,
            sha=commit.sha,
            folder=str(repository.folder),
            git=self.repositories[name],
            date=repository.dates([commit.sha])[commit.sha].astimezone(UTC).isoformat(),
        )

    def _open(self, name: str) -> Repository:
        try:
            return open_repository(self.repositories[name], "", self.cache)
        except BadRepository as error:
            hint = f"repositories.{name} in the matrix names the folder of a clone, or a URL"
            raise BadRepository(f"{name}: {error.message}", hint=hint) from error


def known_as(project: str, revision: str) -> str:
    """Return the key under which a night records a revision of a project."""
    return f"{normalized_name(project)} {revision}"
