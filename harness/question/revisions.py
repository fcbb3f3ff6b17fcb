"""Files that list packages, as they were in the commits of the repository that tracks them.

Nothing is checked out: a file, and those that it includes, are read from git's objects.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.errors import BadRepository, UserMistake
from harness.model import name_of
from harness.model.culprit import Introduction
from harness.model.requirements import exact_version
from harness.question.lockfiles import ENDINGS, FORMATS, Pins, environment_of, read_pins
from harness.question.project_requirements import RequestedExtras, requirements_of
from harness.repository.declared import FILES, text_of
from harness.repository.git import Repository, git_output

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from harness.model.culprit import Commit

# HEAD@{2} has no file, so the first @ ends it.
_AT = re.compile(rf"(?P<file>[^@]*(?:{'|'.join(map(re.escape, ENDINGS))}))@(?P<revision>.+)")
_INCLUDED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)[\s=]*(?P<path>[^\s#]+)", re.MULTILINE)
_NAME = re.compile(r"""^.\s*"?name"?\s*[=:]\s*["'](?P<name>[\w.-]+)""")
_DECLARES = "pyproject.toml"
_MOST_FILES = 100  # that one file includes
_DEFAULT_BRANCHES = ("origin/HEAD", "main", "master")
_LISTS = ("*requirements*.txt", "requirements/*.txt", "*/requirements*.txt", "environment.yml", "environment.yaml")
_MOST_SHOWN = 6  # changed lines of a package
_LONGEST_SHOWN = 120  # characters; the addresses and hashes of a lock are longer


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
        files = self.files_in(commit)
        with laid_out(files) as top:
            place = top / self.path
            if self.path not in files:
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

    def files_in(self, commit: Commit | None) -> dict[str, bytes]:
        """Return the file and those that it includes by their paths, as in a commit; as they are now without one."""
        waiting, known = [self.path], {self.path}
        if self.path.endswith(_DECLARES):
            waiting += [normpath(f"{PurePosixPath(self.path).parent}/{name}") for name in FILES if name != _DECLARES]
        files: dict[str, bytes] = {}
        while waiting and len(known) < _MOST_FILES:
            path = waiting.pop(0)
            content = self._content(path, commit) if not path.startswith(("/", "..")) else None
            if content is None:
                continue
            files[path] = content
            if path.endswith((".txt", ".in")):
                names = (match["path"] for match in _INCLUDED.finditer(content.decode("utf-8", "replace")))
                included = [normpath(f"{PurePosixPath(path).parent}/{name}") for name in names if "://" not in name]
                waiting += [other for other in included if other not in known]
                known.update(included)
        return files

    def _content(self, path: str, commit: Commit | None) -> bytes | None:
        if commit is not None:
            return self.repository.file(commit.sha, path)
        with contextlib.suppress(OSError, ValueError):
            return (self.repository.folder / path).read_bytes()
        return None

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


@contextlib.contextmanager
def laid_out(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a folder with these files by their paths, which may include each other, and none outside it."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / ".git").mkdir()
        for path, content in files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(content)
        yield top


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


def locks_of(root: Path) -> tuple[Path, ...]:
    """Return the lock files of a folder, those of workspaces that it is a member of, and its requirements.txt."""
    paths = [root / known.name for known in FORMATS]
    with contextlib.suppress(BadRepository):
        repository = Repository.open(root)
        paths += [repository.folder / path for path in _locks_above(repository.folder, repository.inside)]
    return tuple(path for path in (*paths, root / "requirements.txt") if path.is_file())


def branched_at(paths: Sequence[Path], branch: str = "") -> tuple[Commit, tuple[Path, ...]]:
    """Return the commit at which the checked-out branch left another, and those files that have changed since.

    The files are in one repository. The other branch is by default the main one. Raises `BadRepository` if that can't
    be told.
    """
    hint = "name the lock before the update with --base, such as uv.lock@main"
    with contextlib.suppress(BadRepository):
        files = {path: TrackedFile.at(path) for path in paths}
        repository = files[paths[0]].repository
        hint = repository.what_is_missing() or hint
        head = repository.commit("HEAD")
        for name in filter(None, (branch, *_DEFAULT_BRANCHES)):
            with contextlib.suppress(BadRepository):
                base = repository.describe(repository.merge_base("HEAD", repository.commit(name).sha))
                changed = [path for path, file in files.items() if file.files_in(base) != file.files_in(None)]
                if changed or base.sha != head.sha:
                    return base, tuple(changed)
    raise BadRepository(f"no commit is known in which {paths[0]} is as before the update", hint=hint)


@frozen
class LockHistory:
    """What a repository installed: the `commits` that changed the files of these `paths`, the newest first.

    Of several files that a commit has, the first one counts.
    """

    repository: Repository
    paths: tuple[str, ...]
    commits: tuple[str, ...]

    @classmethod
    def of(cls, root: Path, names: Collection[str], python: str) -> LockHistory | None:
        """Return the history of a project's lock files, or of files with pins that list some of these packages.

        The lock of a workspace is above the project. None without a repository or such a file; requirements without
        pins say no more than the day of their commit.
        """
        with contextlib.suppress(BadRepository):  # such as a clone without trees: then the way back are days
            repository = Repository.open(root)
            inside, repository = repository.inside, Repository(repository.folder)
            if not git_output(repository.folder, "rev-parse", "--verify", "--quiet", "HEAD"):
                return None
            locks = (
                *(normpath(f"{inside or '.'}/{known.name}") for known in FORMATS),
                *_locks_above(repository.folder, inside),
            )
            if commits := repository.changing(*locks):
                return cls(repository, locks, commits)
            lists = [normpath(f"{inside or '.'}/{name}") for name in _lists_with(root, names, python)]
            included = (path for name in lists for path in TrackedFile(repository, name).files_in(None))
            paths = tuple(dict.fromkeys((*lists, *included)))
            return cls(repository, paths, repository.changing(*paths)) if paths else None
        return None

    def until(self, moment: datetime | None) -> LockHistory:
        """Return the history up to a moment; None is today."""
        if moment is None:
            return self
        dates = self.repository.dates(self.commits)
        return evolve(self, commits=tuple(sha for sha in self.commits if dates[sha] <= moment))

    def file_in(self, sha: str) -> TrackedFile | None:
        """Return the file that lists the packages in a commit, None if there is none, as when it was removed."""
        paths = (path for path in self.paths if self.repository.file(sha, path) is not None)
        path = next(paths, None)
        return TrackedFile(self.repository, path) if path is not None else None

    def introduction(self, package: str, version: str, python: str) -> Introduction | None:
        """Return the commit with which a package came to be of this version or newer; None if no file lists it."""
        listed: dict[int, str | None] = {}

        def version_in(position: int) -> str | None:
            if position not in listed:
                listed[position] = self._version(self.commits[position], package, python)
            return listed[position]

        def has_it(position: int) -> bool:
            there = version_in(position)
            return there is not None and Version(there) >= Version(version)

        if not self.commits or (file := self.file_in(self.commits[0])) is None:
            return None
        newest = version_in(0)
        if not has_it(0):
            return Introduction(file.path, newest) if newest is not None else None
        # Between a commit that has it and an older one that does not, there are two neighbours of which one has it.
        having, lacking = 0, len(self.commits)
        while lacking - having > 1:
            middle = (having + lacking) // 2
            having, lacking = (middle, lacking) if has_it(middle) else (having, middle)
        if lacking == len(self.commits) and self.repository.is_shallow:
            return None
        sha = self.commits[having]
        file = self.file_in(sha) or file
        there = version_in(having) or version
        lines = self._changed_lines(sha, package) if lacking < len(self.commits) else ()
        return Introduction(file.path, there, self.repository.describe(sha), lines)

    def _changed_lines(self, sha: str, package: str) -> tuple[str, ...]:
        """Return the lines about a package that a commit changed, as in a diff; long ones are left out."""
        words = ("diff-tree", "-p", "-U3", "--no-color", "--no-ext-diff", "--no-textconv", f"{sha}^", sha, "--")
        text = self.repository.call(*words, *(f":(top,literal){path}" for path in self.paths))
        _, *hunks = re.split(r"^@@.*$", text.decode("utf-8", "replace"), flags=re.MULTILINE)
        name = re.compile(rf"(?i)(?<![\w.-]){re.sub('[-_.]', '[-_.]', package)}(?![\w.-])")
        lines: list[str] = []
        for hunk in filter(name.search, hunks):
            owner = ""
            for line in hunk.splitlines():
                if about := _NAME.search(line):
                    owner = about["name"]
                is_changed = line.startswith(("+", "-")) and len(line) <= _LONGEST_SHOWN
                is_named = name.search(line[1:]) or (name.fullmatch(owner) and "version" in line)
                lines += [line] if is_changed and is_named else []
        return tuple(lines[:_MOST_SHOWN])

    def _version(self, sha: str, package: str, python: str) -> str | None:
        """Return the version of a package in a commit, None if none is listed or the file can't be read."""
        file = self.file_in(sha)
        if file is None:
            return None
        try:
            pins = file.pins_in(self.repository.describe(sha), python)
        except UserMistake:
            return None
        return dict(filter(None, map(exact_version, pins.all_requirements))).get(package)


def _locks_above(top: Path, inside: str) -> list[str]:
    """Return the locks of uv workspaces that a folder of a repository is a member of, relative to the repository."""
    locks = []
    for folder in PurePosixPath(inside).parents if inside else ():
        path = normpath(f"{folder}/uv.lock")
        member = PurePosixPath(inside).relative_to(folder).as_posix()
        if f'"{member}"' in text_of(top / path):
            locks.append(path)
    return locks


def _lists_with(root: Path, names: Collection[str], python: str) -> list[str]:
    """Return the tracked files with pins that list some packages, relative to the project, that with most first."""
    patterns = (f":(glob){pattern}" for pattern in _LISTS)
    listed: dict[str, int] = {}
    for name in filter(None, git_output(root, "ls-files", "-z", "--", *patterns).split("\0")):
        with contextlib.suppress(UserMistake):
            requirements = read_pins(root / name, python).all_requirements
            if any("==" in text for text in requirements):
                listed[name] = len(set(names).intersection(map(name_of, requirements)))
    return sorted(filter(listed.get, listed), key=lambda name: (-listed[name], len(name)))
