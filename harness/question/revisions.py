"""Files that list packages, as they were in a commit of the repository that tracks them.

Nothing is checked out: a file, and those that it includes, are read from git's objects.
"""

from __future__ import annotations

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import BadRepository, UserMistake
from harness.question.lockfiles import Pins, environment_of, read_pins
from harness.question.project_requirements import RequestedExtras, requirements_of
from harness.repository.declared import FILES
from harness.repository.git import Repository

if TYPE_CHECKING:
    from harness.model.culprit import Commit

# HEAD@{2} has no file, so the first @ ends it.
_AT = re.compile(r"(?P<file>[^@]*\.(?:txt|in|toml|lock|ya?ml))@(?P<revision>.+)")
_INCLUDED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)[\s=]*(?P<path>[^\s#]+)", re.MULTILINE)
_DECLARES = "pyproject.toml"
_MOST_FILES = 100  # that one file includes


@frozen
class TrackedFile:
    """A file in a repository; `path` is relative to the repository's folder, with slashes."""

    repository: Repository
    path: str

    @classmethod
    def at(cls, path: Path) -> TrackedFile:
        """Find the repository that a file is in; the file and its folder may be gone. Raises `BadRepository`."""
        place = path.expanduser().absolute()
        folder = next(parent for parent in place.parents if parent.is_dir())
        repository = Repository.open(folder)
        inside = PurePosixPath(repository.inside, place.relative_to(folder).as_posix())
        return cls(Repository(repository.folder), normpath(inside.as_posix()))

    def pins_in(self, commit: Commit, python: str) -> Pins:
        """Return what the file listed in a commit, for a Python of this version.

        Of pyproject.toml that is what the project and its tests required. Raises `UserMistake`.
        """
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            (top / ".git").mkdir()  # the files may include others of the repository, and none outside it
            place = top / self.path
            if not self._write(commit, top):
                raise UserMistake(f"{self.path} did not exist in commit {commit.described}", hint=self._hint(commit))
            if place.name != _DECLARES:
                try:
                    return read_pins(place, python)
                except UserMistake as error:
                    what = error.message.replace(f"{top}/", "")
                    raise UserMistake(f"in commit {commit.described}: {what}", hint=error.hint) from error
            required = requirements_of(place.parent, None, RequestedExtras(find=True), environment_of(python))
            if not required.requirements:
                raise UserMistake(f"{self.path} required nothing in commit {commit.described}", hint=self._hint(commit))
            return Pins(required.requirements)

    def _write(self, commit: Commit, top: Path) -> bool:
        """Write the file and those that it includes below a folder; returns whether the commit has it."""
        waiting, known = [self.path], {self.path}
        if self.path.endswith(_DECLARES):
            waiting += [normpath(f"{PurePosixPath(self.path).parent}/{name}") for name in FILES if name != _DECLARES]
        while waiting and len(known) < _MOST_FILES:
            path = waiting.pop(0)
            content = self.repository.file(commit.sha, path) if not path.startswith(("/", "..")) else None
            if content is None:
                continue
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(content)
            if path.endswith((".txt", ".in")):
                names = (match["path"] for match in _INCLUDED.finditer(content.decode("utf-8", "replace")))
                included = [normpath(f"{PurePosixPath(path).parent}/{name}") for name in names if "://" not in name]
                waiting += [other for other in included if other not in known]
                known.update(included)
        return (top / self.path).exists()

    def _hint(self, commit: Commit) -> str:
        """Say which commits have the file that one of them lacks."""
        having = [
            sha for sha in self.repository.changing(self.path) if self.repository.file(sha, self.path) is not None
        ]
        if not having:
            return self.repository.what_is_missing() or f"no commit has {self.path}; name a file that git tracks"
        is_gone = self.repository.is_ancestor(having[-1], commit.sha)
        when, sha = ("was last in", having[0]) if is_gone else ("came with", having[-1])
        return f"{self.path} {when} commit {self.repository.describe(sha).described}"


def file_at_revision(text: str) -> tuple[Path, str] | None:
    """Return the file and the revision of an end such as uv.lock@v1.4.0; None for another text."""
    match = _AT.fullmatch(text)
    return (Path(match["file"]), match["revision"]) if match is not None else None


def commit_at(path: Path, revision: str, day: datetime | None, option: str) -> tuple[Commit, datetime]:
    """Return the commit of a file's repository that a revision names, and when it was made.

    With a `day` it is the last one up to the end of that. Raises `UserMistake`.
    """
    try:
        repository = TrackedFile.at(path).repository
    except BadRepository as error:
        raise UserMistake(
            f"{option} {path}@{revision}: {path} is not in a git repository",
            hint=error.hint or "name a file with the older packages, or a day",
        ) from error
    commit = repository.commit(revision) if day is None else repository.last_before(day)
    if commit is None:
        raise UserMistake(
            f"{option} {path}@{revision}: the repository has no commit of that day or before",
            hint=repository.what_is_missing() or "name a later day",
        )
    # The author's date is older than the files of a commit that was amended.
    return commit, repository.dates([commit.sha])[commit.sha].astimezone(UTC)
