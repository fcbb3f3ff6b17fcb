"""Whether a folder is still what it was: the manifest of its files, and the table of contents that saves reading them.

A write in place updates a file's change time, even if size and modification time are restored. A new hard link does
too. So one ledger, for all files of the cache, remembers the content that each file had at a change time, and a file
with another one is read. Losing the ledger costs time, nothing else. Manifests are kept outside of what they record,
away from the code that runs in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from attrs import define, field, fields, frozen

from harness.atomic import sha256_of, write_whole
from harness.environment.workspace import Workspace
from harness.records import INVALID

_SCHEMA = 5
_WAIT_S = 60.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS files (device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER,"
    " content TEXT, PRIMARY KEY (device, inode)) WITHOUT ROWID"
)
_INSERT = (  # two builds that link to one file may note it in the other order
    "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (device, inode) DO UPDATE SET size = excluded.size,"
    " mtime = excluded.mtime, ctime = excluded.ctime, content = excluded.content WHERE excluded.ctime > files.ctime"
)
_SELECT = "SELECT * FROM files WHERE inode IN (SELECT value FROM json_each(?))"
_LASTS_S = 120.0
_READ = 8  # manifests; each takes some megabytes
_COMPARED = 16
_RECORDS = 1024  # of wheels, and of their bytecode
_MOST = 2**63 - 1  # of SQLite
_TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system
UNREADABLE = "can't be read, or is neither a file nor a link"


class FileState(NamedTuple):
    """What a file or symbolic link is. The time is in nanoseconds.

    `content` is its SHA-256, or the target of a link.
    """

    mode: int
    size: int
    mtime_ns: int
    content: str

    @classmethod
    def of(cls, status: os.stat_result, content: str) -> FileState:
        """The state of a file with this content."""
        return cls(status.st_mode, status.st_size, status.st_mtime_ns, content)

    def is_like(self, status: os.stat_result) -> bool:
        """Whether everything but the content is equal."""
        return (status.st_mode, status.st_size, status.st_mtime_ns) == self[:3]


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

    def compare(self, folder: Path, recorded: Mapping[str, FileState]) -> tuple[list[str], list[str]]:
        """Compare a folder with a record: the paths that are missing or differ, and those that were added.

        Raises `OSError` if the folder can't be read.
        """
        states = self.below(folder)
        return differing(recorded, states), [path for path in states if path not in recorded]

    def differing(self, folder: Path | str, recorded: Mapping[str, FileState]) -> list[str]:
        """The recorded files that are missing or differ below a folder; what was added there is not looked for."""
        differs: list[str] = []
        unsure: dict[str, os.stat_result] = {}
        for path, state in recorded.items():
            try:
                now = os.lstat(f"{folder}/{path}")
            except (FileNotFoundError, NotADirectoryError):
                differs.append(path)
                continue
            noted = self._noted.get((now.st_dev, now.st_ino))
            as_recorded = now.st_size, now.st_mtime_ns, now.st_ctime_ns, state.content
            if noted != as_recorded or not state.is_like(now):
                unsure[path] = now
        return differs + differing({path: recorded[path] for path in unsure}, self.states(unsure, folder))

    def below(self, folder: Path) -> dict[str, FileState]:
        """What all files below a folder are, by path. Raises `OSError` if the folder can't be read."""
        return self.states(files_below(folder), folder)

    def states(self, files: Mapping[str, os.stat_result], folder: Path | str = "") -> dict[str, FileState]:
        """What these files are, by path below a folder; one whose content is not known is read."""
        known, seen_ns = self.known(files), time.time_ns()
        fresh = []
        for path, now in files.items():
            if path not in known:
                known[path] = content_of(os.path.join(folder, path), now)  # noqa: PTH118 - for speed
                if known[path] != UNREADABLE:
                    fresh.append((now, known[path]))
        self.note_settled(fresh, seen_ns)
        return {path: FileState.of(now, known[path]) for path, now in files.items()}

    def known(self, files: Mapping[str, os.stat_result]) -> dict[str, str]:
        """The contents of those files that did not change since they were noted."""
        contents: dict[str, str] = {}
        unsure: dict[str, os.stat_result] = {}
        for path, now in files.items():
            state = self._noted.get((now.st_dev, now.st_ino))
            if state is not None and state[:3] == (now.st_size, now.st_mtime_ns, now.st_ctime_ns):
                contents[path] = state[3]
            else:
                unsure[path] = now
        inodes = json.dumps([now.st_ino & _MOST for now in unsure.values()])
        noted = self._answer(lambda database: database.execute(_SELECT, (inodes,))) if unsure else []
        rows = {row[:5]: row[5] for row in noted}
        stored = {path: rows[key] for path, now in unsure.items() if (key := signature(now)) in rows}
        self._remember((unsure[path], content) for path, content in stored.items())
        return contents | stored

    def note_settled(self, contents: Iterable[tuple[os.stat_result, str]], seen_ns: int) -> None:
        """Note the contents of files that had not just changed when their states were seen, at a time in nanoseconds.

        A later change may get the same time.
        """
        self.note([(status, content) for status, content in contents if status.st_ctime_ns < seen_ns - _TICK_NS])

    def note(self, contents: Collection[tuple[os.stat_result, str]]) -> None:
        """Note the contents of files. Each state must be from before its content was read."""
        if contents:
            rows = [(*signature(status), content) for status, content in contents]
            self._answer(lambda database: database.executemany(_INSERT, rows))
        self._remember(contents)

    def _remember(self, contents: Iterable[tuple[os.stat_result, str]]) -> None:
        for status, content in contents:
            key = status.st_dev, status.st_ino
            former = self._noted.get(key)
            if former is None or former[2] < status.st_ctime_ns:
                self._noted[key] = status.st_size, status.st_mtime_ns, status.st_ctime_ns, content

    def _answer(self, ask: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> list[tuple[Any, ...]]:
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as database, database:
                database.execute("PRAGMA synchronous = OFF")
                database.execute(_TABLE)
                return ask(database).fetchall()
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError):  # damaged, as by a crash of the machine
                self.path.unlink(missing_ok=True)
            return []


def differing(recorded: Mapping[str, FileState], states: Mapping[str, FileState]) -> list[str]:
    """The recorded files that are missing or have another state."""
    return [path for path, state in recorded.items() if states.get(path) != state]


def signature(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What tells a file with its content from any other: device, inode, size, and both times."""
    return status.st_dev & _MOST, status.st_ino & _MOST, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def signatures(folder: Path) -> set[tuple[str, tuple[int, ...]]]:
    """The path and the signature of each file below a folder, all that says whether one changed. Raises `OSError`."""
    return {(path, signature(status)) for path, status in files_below(folder).items()}


def files_below(folder: Path) -> dict[str, os.stat_result]:
    """Every file and symbolic link below a folder, by its path relative to it. Raises `OSError`."""
    files: dict[str, os.stat_result] = {}
    left = [""]
    while left:
        parent = left.pop()
        with os.scandir(f"{folder}/{parent}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(f"{parent}{entry.name}/")
                    continue
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    files[parent + entry.name] = entry.stat(follow_symlinks=False)
    return files


def content_of(path: Path | str, status: os.stat_result) -> str:
    """The SHA-256 of a file, or the target of a symbolic link, else `UNREADABLE`."""
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)  # noqa: PTH115 - must be the target as it is written
        if stat.S_ISREG(status.st_mode):
            return sha256_of(path)
    return UNREADABLE


def read_states(path: Path) -> Mapping[str, FileState]:
    """The files of a record, by their paths; empty if there is no valid one."""
    try:
        return _read_states(path, path.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=_RECORDS)
def _read_states(path: Path, _changed: int) -> Mapping[str, FileState]:
    try:
        return {name: FileState(*row) for name, row in json.loads(path.read_bytes()).items()}
    except INVALID:
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
    def of(cls, wheels: Mapping[str, Mapping[str, FileState]], others: Mapping[str, FileState]) -> Manifest:
        """The manifest of an environment with these files of wheels, and others."""
        files = {path: state for rows in wheels.values() for path, state in rows.items()}
        return cls({**others, **files}, {key: tuple(rows) for key, rows in wheels.items()})

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Read a manifest, None if there is no valid one."""
        try:
            return cls._read(path, path.stat().st_mtime_ns)
        except OSError:
            return None

    @classmethod
    @lru_cache(maxsize=_READ)
    def _read(cls, path: Path, _changed: int) -> Manifest | None:
        try:
            record: dict[str, Any] = json.loads(path.read_bytes())
            if record["schema"] != _SCHEMA:
                return None
            files = {name: FileState(*row) for name, row in record["files"].items()}
            named = {key: tuple(names) for key, names in record["wheels"].items()}
            return cls(files, named, tuple(record["overwritten"]), tuple(record["clashes"]))
        except INVALID:
            return None

    def write(self, path: Path) -> None:
        """Write it to a file. Raises `OSError`."""
        record = {part.name: getattr(self, part.name) for part in fields(Manifest)}
        write_whole(path, json.dumps({"schema": _SCHEMA, **record}))

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
            differs, added = ledger.compare(folder, self.files)
        except OSError:
            return ["."]
        for path in added:
            if path.endswith(".pyc") and "__pycache__" in path.split("/"):
                (folder / path).unlink(missing_ok=True)
            else:
                differs.append(path)
        return sorted(differs)


@define
class RecentlyCompared:
    """The manifests of environments that matched them, by name, for `lasts_s` seconds; only the last sixteen are kept.

    So a run starts at once. It is compared again when it ends, so a change in between is noticed then; it is only
    unknown whose change it was.
    """

    lasts_s: float = _LASTS_S
    clock: Callable[[], float] = time.monotonic
    _matched: dict[str, tuple[float, Manifest]] = field(factory=dict, init=False)

    def note(self, name: str, manifest: Manifest) -> None:
        """Note that an environment matches its manifest now."""
        others = [item for item in self._matched.items() if item[0] != name]
        self._matched = dict([*others[1 - _COMPARED :], (name, (self.clock(), manifest))])

    def manifest(self, name: str) -> Manifest | None:
        """The manifest that an environment matched a moment ago, None if it is too long ago."""
        since, manifest = self._matched.get(name, (0.0, None))
        return manifest if self.clock() - since < self.lasts_s else None

    def forget(self) -> None:
        """Forget all of them: environments share files, so a change in one may be a change in others."""
        self._matched = {}
