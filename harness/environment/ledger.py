"""Whether an environment is still what its lock says: its files, recorded when it was built, and compared later.

A write in place updates a file's change time, even if size and modification time are restored. A new hard link does
too. So one ledger, for all files of the cache, remembers the content that each file had at a change time, and a file
with another one is read. Losing the ledger costs time, nothing else. The records of what an environment should hold are
kept outside of it, away from the code that runs in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from attrs import define, field, fields, frozen

from harness.atomic import sha256_of, write_whole
from harness.environment.workspace import Workspace
from harness.run.launch import remove_tree
from harness.run.locks import Busy, acquire

_SCHEMA = 5
_WAIT_S = 60.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS files (device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER,"
    " content TEXT, PRIMARY KEY (device, inode)) WITHOUT ROWID"
)
_LASTS_S = 120.0
_ENVIRONMENTS = 8
_MOST = 2**63 - 1  # of SQLite
_TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system

_Signature = tuple[int, int, int, int, int]


class FileState(NamedTuple):
    """What a file or symbolic link should be. The time is in nanoseconds.

    `content` is its SHA-256, or the target of a link.
    """

    mode: int
    size: int
    mtime_ns: int
    content: str

    def is_like(self, found: os.stat_result) -> bool:
        """Whether everything but the content is equal."""
        return (found.st_mode, found.st_size, found.st_mtime_ns) == self[:3]


@frozen
class Ledger:
    """The contents of files at the change times when they were read or linked, by device and inode.

    A process remembers what it asked for.
    """

    path: Path
    _noted: dict[tuple[int, int], tuple[int, int, int, str]] = field(factory=dict, eq=False, repr=False)

    @classmethod
    @cache
    def of(cls, workspace: Workspace) -> Ledger:
        """The ledger of a workspace, one for all of this process."""
        return cls(workspace.records / "files.db")

    def known(self, found: Mapping[str, os.stat_result]) -> dict[str, str]:
        """The contents of those files that did not change since they were noted."""
        inodes = [one.st_ino & _MOST for one in found.values()]
        select = "SELECT * FROM files WHERE inode IN (SELECT value FROM json_each(?))"
        rows = {row[:5]: row[5] for row in self._answer(select, inodes)} if inodes else {}
        contents = {path: rows[key] for path, one in found.items() if (key := signature(one)) in rows}
        self._remember((found[path], content) for path, content in contents.items())
        return contents

    def note(self, contents: Collection[tuple[os.stat_result, str]]) -> None:
        """Note the contents of files. Each state must be from before its content was read."""
        rows = [(*signature(found), content) for found, content in contents]
        columns = ", ".join(f"json_extract(value, '$[{i}]')" for i in range(6))
        if rows:
            self._answer(f"INSERT OR REPLACE INTO files SELECT {columns} FROM json_each(?)", rows)  # noqa: S608
        self._remember(contents)

    def read(self, folder: Path, found: Mapping[str, os.stat_result]) -> dict[str, str]:
        """The contents of files below a folder, by path; those that are not known are read. Raises `OSError`."""
        known, settled = self.known(found), time.time_ns() - _TICK_NS  # a later change may get the same time
        fresh = {path: content_of(folder / path, now) for path, now in found.items() if path not in known}
        self.note([(found[path], content) for path, content in fresh.items() if found[path].st_ctime_ns < settled])
        return known | fresh

    def _remember(self, contents: Iterable[tuple[os.stat_result, str]]) -> None:
        for found, content in contents:
            state = found.st_size, found.st_mtime_ns, found.st_ctime_ns, content
            self._noted[found.st_dev, found.st_ino] = state

    def _answer(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as database, database:
                database.execute("PRAGMA synchronous = OFF")
                database.execute(_TABLE)
                return database.execute(statement, (json.dumps(values),)).fetchall()
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError):  # damaged, as by a crash of the machine
                self.path.unlink(missing_ok=True)
            return []

    def compare(self, folder: Path, recorded: Mapping[str, FileState]) -> tuple[list[str], list[str]]:
        """Compare a folder with a record: the paths that are missing or differ, and those that were added.

        Raises `OSError` if the folder can't be read.
        """
        return self.differing(recorded, look(folder), f"{folder}/")

    def differing(
        self, recorded: Mapping[str, FileState], found: Iterable[tuple[str, os.stat_result]], prefix: str = ""
    ) -> tuple[list[str], list[str]]:
        """Compare files with a record, as `compare`; one whose content is not known is read."""
        noted, there = self._noted, set()
        differing, added = [], []
        unsure: dict[str, os.stat_result] = {}
        for path, now in found:
            there.add(path)
            if path not in recorded:
                added.append(path)
                continue
            mode, size, mtime, content = recorded[path]
            if (now.st_mode, now.st_size, now.st_mtime_ns) != (mode, size, mtime):
                differing.append(path)
            elif noted.get((now.st_dev, now.st_ino)) != (size, mtime, now.st_ctime_ns, content):
                unsure[path] = now
        known = self.known(unsure)
        fresh = []
        for path, now in unsure.items():
            if path not in known:
                try:
                    known[path] = content_of(prefix + path, now)
                except OSError:
                    differing.append(path)
                    continue
                fresh.append((now, known[path]))
            if known[path] != recorded[path].content:
                differing.append(path)
        self.note(fresh)
        return [*differing, *(path for path in recorded if path not in there)], added


def signature(found: os.stat_result) -> _Signature:
    """What tells a file with its content from any other: device, inode, size, and both times."""
    return found.st_dev & _MOST, found.st_ino & _MOST, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def signatures(folder: Path) -> set[tuple[str, tuple[int, ...]]]:
    """The path and the signature of each file below a folder, all that says whether one changed. Raises `OSError`."""
    return {(path, signature(found)) for path, found in look(folder)}


def files_below(folder: Path) -> dict[str, os.stat_result]:
    """Every file and symbolic link below a folder, by its path relative to it. Raises `OSError`."""
    return dict(look(folder))


def look(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and symbolic link below a folder, by its path relative to it. Raises `OSError`."""
    left = [""]
    while left:
        parent = left.pop()
        with os.scandir(f"{folder}/{parent}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(f"{parent}{entry.name}/")
                    continue
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    yield parent + entry.name, entry.stat(follow_symlinks=False)


def state_of(found: os.stat_result, content: str) -> FileState:
    """The state to record of a file with this content."""
    return FileState(found.st_mode, found.st_size, found.st_mtime_ns, content)


def content_of(path: Path | str, found: os.stat_result) -> str:
    """The SHA-256 of a file, or the target of a symbolic link. Raises `OSError`."""
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)  # noqa: PTH115 - must be the target as it is written
    if not stat.S_ISREG(found.st_mode):
        return "neither a file nor a link"
    return sha256_of(path)


def read_states(path: Path) -> dict[str, FileState]:
    """The files of a record, by their paths; empty if there is no valid one."""
    try:
        return {name: FileState(*row) for name, row in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


@frozen
class Manifest:
    """The files of an environment by their relative paths, and which of them came from which wheel of the store.

    `overwritten` are the paths that several wheels have, `clashes` says which wheel's files are installed.
    """

    files: Mapping[str, FileState]
    wheels: Mapping[str, tuple[str, ...]]
    overwritten: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, wheels: Mapping[str, Mapping[str, FileState]], ledger: Ledger) -> Manifest:
        """Record a newly built folder; `wheels` has the files of each wheel that are recorded already."""
        files = {path: state for rows in wheels.values() for path, state in rows.items()}
        found = files_below(folder)
        contents = ledger.read(folder, {path: now for path, now in found.items() if path not in files})
        files |= {path: state_of(found[path], content) for path, content in contents.items()}
        named = {key: tuple(path for path in rows if path in found) for key, rows in wheels.items()}
        return cls({path: files[path] for path in found}, named)

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Read a manifest, None if there is no valid one."""
        try:
            told: dict[str, Any] = json.loads(path.read_bytes())
            if told["schema"] != _SCHEMA:
                return None
            files = {name: FileState(*row) for name, row in told["files"].items()}
            named = {key: tuple(names) for key, names in told["wheels"].items()}
            return cls(files, named, tuple(told["overwritten"]), tuple(told["clashes"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, path: Path) -> None:
        """Write it to a file. Raises `OSError`."""
        told = {one.name: getattr(self, one.name) for one in fields(Manifest)}
        write_whole(path, json.dumps({"schema": _SCHEMA, **told}))

    def owners(self) -> dict[str, str]:
        """The wheel of each file that came from the store."""
        return {path: key for key, paths in self.wheels.items() for path in paths}

    def wheels_with(self, paths: Iterable[str]) -> list[str]:
        """The wheels that these files came from."""
        wanted = set(paths)
        return [key for key, names in self.wheels.items() if not wanted.isdisjoint(names)]

    def differences(self, folder: Path, ledger: Ledger) -> list[str]:
        """Compare a folder with the record: the paths that differ.

        Bytecode that a process wrote next to a source, despite PYTHONPYCACHEPREFIX, is removed.
        """
        try:
            differing, more = ledger.compare(folder, self.files)
        except OSError:
            return ["."]
        for path in more:
            if path.endswith(".pyc") and "__pycache__" in path.split("/"):
                (folder / path).unlink(missing_ok=True)
            else:
                differing.append(path)
        return sorted(differing)


class _Kept:
    """A path of an environment: in a folder of the cache, named after it."""

    def __init__(self, folder: str, suffix: str = "") -> None:
        self._folder, self._suffix = folder, suffix

    def __get__(self, location: Location, owner: type) -> Path:
        parent: Path = getattr(location.workspace, self._folder)
        return parent / f"{location.name}{self._suffix}"


@frozen
class Location:
    """Where an environment is, and by its name what is kept outside of it: its record, its locks, its bytecode.

    Runs share the lock `in_use`; building and removing need it exclusively. A process that may read the environment
    shares `kept` for its lifetime; only removal needs that one exclusively. The run that uses the bytecode tree
    `pycache` has `bytecode_lock`. `aliases` are other paths to it.
    """

    workspace: Workspace
    name: str

    folder = _Kept("environments")
    in_use = _Kept("locks", ".lock")
    kept = _Kept("locks", ".kept.lock")
    bytecode_lock = _Kept("locks", ".bytecode.lock")
    manifest_path = _Kept("records", ".json")
    aliases = _Kept("aliases")
    pycache = _Kept("pycache")

    @property
    def python(self) -> Path:
        """The interpreter of the finished environment."""
        return self.folder / "bin" / "python"

    def remove(self) -> bool:
        """Remove the environment unless it is in use; returns whether it was removed."""
        try:
            with acquire(self.kept, wait=False), acquire(self.in_use, wait=False):
                if not self.folder.is_dir():
                    return False
                self.discard()
        except Busy:
            return False
        return True

    def discard(self) -> None:
        """Remove the environment. Call it with the exclusive lock held."""
        # Renamed first: a half-removed folder must not be taken for an environment.
        doomed = self.workspace.building / f"{self.name}-removed"
        remove_tree(doomed)
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(doomed)
        self.manifest_path.unlink(missing_ok=True)
        remove_tree(self.pycache)
        remove_tree(self.aliases)
        remove_tree(doomed)


@define
class RecentlyCompared:
    """The manifests of environments that matched them, by name, for `lasts_s` seconds; only the last eight are kept.

    So a run starts at once. It is compared again when it ends, so a change in between is noticed then; it is only
    unknown whose change it was.
    """

    lasts_s: float = _LASTS_S
    clock: Callable[[], float] = time.monotonic
    _found: dict[str, tuple[float, Manifest]] = field(factory=dict, init=False)

    def note(self, name: str, manifest: Manifest) -> None:
        """Note that an environment matches its manifest now."""
        others = [item for item in self._found.items() if item[0] != name]
        self._found = dict([*others[1 - _ENVIRONMENTS :], (name, (self.clock(), manifest))])

    def manifest(self, name: str) -> Manifest | None:
        """The manifest that an environment matched a moment ago, None if it is too long ago."""
        since, manifest = self._found.get(name, (0.0, None))
        return manifest if self.clock() - since < self.lasts_s else None

    def forget(self) -> None:
        """Forget all of them: environments share files, so a change in one may be a change in others."""
        self._found = {}
