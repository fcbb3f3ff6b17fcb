"""Whether an environment is still what its lock says: its files, recorded when it was built, and compared later.

A write in place updates a file's change time, even if size and modification time are restored. A new hard link does
too. If only the change time differs, the content decides. The record is kept outside of the environment, away from the
code that runs in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import define, evolve, field, frozen

from harness.atomic import write_whole
from harness.environment.workspace import Busy, acquire, held_lock
from harness.run.scratch_folder import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.environment.wheel_store import WheelStore
    from harness.environment.workspace import Location, Workspace


# Threads that go through thousands of files take turns: side by side, each would wait for the other at every file.
in_turn = threading.RLock()


class FileState(NamedTuple):
    """A recorded file or symbolic link. Times are in nanoseconds; `content` is its SHA-256, or the target of a link."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    content: str

    def is_like(self, found: os.stat_result) -> bool:
        """Whether everything but the change time is equal."""
        return (
            found.st_size == self.size
            and found.st_mtime_ns == self.mtime_ns
            and found.st_ino == self.inode
            and found.st_mode == self.mode
        )

    def is_newer_than(self, recorded: FileState) -> bool:
        """Whether this is the same file, with the same content and a later change time."""
        return self.ctime_ns > recorded.ctime_ns and self._replace(ctime_ns=recorded.ctime_ns) == recorded


class Comparison(NamedTuple):
    """Paths that differ from the record: changed, missing or added. In `touched` only the change time differs."""

    changed: list[str]
    missing: list[str]
    added: list[str]
    touched: dict[str, os.stat_result]


def files_below(folder: Path | str) -> dict[str, os.stat_result]:
    """Every file and symbolic link below a folder, by its path relative to it. Raises `OSError`."""
    found: dict[str, os.stat_result] = {}
    left = [(str(folder), "")]
    while left:
        parent, prefix = left.pop()
        with os.scandir(parent) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, f"{prefix}{entry.name}/"))
                else:
                    found[prefix + entry.name] = entry.stat(follow_symlinks=False)
    return found


def state_of(path: Path | str, content: str | None = None) -> FileState:
    """The state of a file now; pass `content` if it is known already. Raises `OSError`."""
    found = os.lstat(path)
    known = content if content is not None else content_of(path, found)
    return FileState(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, known)


def content_of(path: Path | str, found: os.stat_result) -> str:
    """The SHA-256 of a file, or the target of a symbolic link. Raises `OSError`."""
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)  # noqa: PTH115 - must be the target as it is written
    if not stat.S_ISREG(found.st_mode):
        return "neither a file nor a link"
    with open(path, "rb") as file:  # noqa: PTH123 - called for each of many thousand files
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare(recorded: Mapping[str, FileState], found: Mapping[str, os.stat_result]) -> Comparison:
    """The differences between a record and the files now."""
    changed, missing = [], []
    touched: dict[str, os.stat_result] = {}
    for path, state in recorded.items():
        now = found.get(path)
        if now is None:
            missing.append(path)
        elif not state.is_like(now):
            changed.append(path)
        elif now.st_ctime_ns != state.ctime_ns:
            touched[path] = now
    return Comparison(changed, missing, [path for path in found if path not in recorded], touched)


def settle(
    folder: Path | str,
    recorded: Mapping[str, FileState],
    touched: Mapping[str, os.stat_result],
    known_ctime: Callable[[str], int | None] = lambda _: None,
) -> tuple[dict[str, FileState], list[str]]:
    """Compare the content of files in which only the change time differs (`touched`, as they were found).

    Returns the new states of unchanged files, and the paths of the others. `known_ctime` is the change time that our
    own link left on a file; a file that still has it is not read.
    """
    same: dict[str, FileState] = {}
    changed = []
    for path, found in touched.items():
        state = recorded[path]
        if found.st_ctime_ns == known_ctime(path):
            same[path] = state._replace(ctime_ns=found.st_ctime_ns)
            continue
        where = os.path.join(folder, path)  # noqa: PTH118 - for speed
        try:
            before = os.lstat(where)
            now = state_of(where)
        except OSError:
            changed.append(path)
            continue
        if state.is_like(before) and now.content == state.content:
            # The state before reading, so that a write in between shows next time.
            same[path] = state._replace(ctime_ns=before.st_ctime_ns)
        else:
            changed.append(path)
    return same, changed


_SCHEMA = 1


@frozen
class Manifest:
    """The files of a folder by their relative paths, and which of them came from which wheel of the store.

    `lock` is the id of the lock that was installed, `kind` the store's name for its kind of interpreter.
    """

    lock: str
    kind: str
    files: Mapping[str, FileState]
    wheels: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, folder: Path, lock: str, kind: str, wheels: Mapping[str, Mapping[str, FileState]]) -> Manifest:
        """Record a newly built folder; `wheels` has the files of each wheel that are recorded already."""
        known = {path: state for files in wheels.values() for path, state in files.items()}
        files = {path: known[path] if path in known else state_of(folder / path) for path in files_below(folder)}
        named = {key: tuple(path for path in rows if path in files) for key, rows in wheels.items()}
        return cls(lock, kind, files, named)

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Read a manifest, None if there is no valid one."""
        try:
            told: dict[str, Any] = json.loads(path.read_bytes())
            if told["schema"] != _SCHEMA:
                return None
            files = {name: FileState(*row) for name, row in told["files"].items()}
            named = {key: tuple(names) for key, names in told["wheels"].items()}
            return cls(str(told["lock"]), str(told["kind"]), files, named)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, path: Path) -> None:
        """Write it to a file. Raises `OSError`."""
        told = {"schema": _SCHEMA, "lock": self.lock, "kind": self.kind, "files": self.files, "wheels": self.wheels}
        write_whole(path, json.dumps(told))

    def owners(self) -> dict[str, str]:
        """The wheel of each file that came from the store."""
        return {path: key for key, paths in self.wheels.items() for path in paths}

    def wheels_with(self, paths: set[str]) -> list[str]:
        """The wheels that these files came from."""
        return [key for key, names in self.wheels.items() if not paths.isdisjoint(names)]

    def look(
        self, folder: Path, known_ctimes: Callable[[str], Mapping[str, int]], *, is_users: bool = False
    ) -> tuple[tuple[str, ...], Manifest]:
        """Compare a folder with the record: the paths that differ, and the manifest with newer change times.

        `known_ctimes` returns, for a wheel, the change times that the store left on its files. In a user's folder
        (`is_users`), other files do not count. Bytecode that a process wrote next to a source, despite
        PYTHONPYCACHEPREFIX, is removed.
        """
        try:
            found = files_below(folder)
        except OSError:
            return (".",), self
        seen = compare(self.files, found)
        same: dict[str, FileState] = {}
        changed = seen.changed
        if seen.touched:
            moved = set(seen.touched)
            hints: dict[str, int] = {}
            for key in self.wheels_with(moved):
                hints.update(known_ctimes(key))
            same, differing = settle(folder, self.files, seen.touched, hints.get)
            changed = [*changed, *differing]
        ours = {path.partition("/")[0] for path in self.files}
        added = []
        for path in seen.added:
            if path.endswith(".pyc") and "__pycache__" in path.split("/"):
                (folder / path).unlink(missing_ok=True)
            elif not is_users or path.partition("/")[0] in ours:
                added.append(path)
        differs = tuple(sorted([*changed, *seen.missing, *added]))
        return differs, evolve(self, files={**self.files, **same}) if same else self


@frozen
class EnvironmentRecord:
    """The record of an environment, kept outside of it, by its name."""

    workspace: Workspace
    name: str

    @property
    def in_use(self) -> Path:
        """The lock that a run shares."""
        return self.workspace.locks / f"{self.name}.lock"

    @property
    def kept(self) -> Path:
        """The lock that a process shares while it may read the environment."""
        return self.workspace.locks / f"{self.name}.kept.lock"

    @property
    def bytecode_lock(self) -> Path:
        """The lock of the run that uses the bytecode tree."""
        return self.workspace.locks / f"{self.name}.bytecode.lock"

    @property
    def manifest_path(self) -> Path:
        """The path of the manifest."""
        return self.workspace.records / f"{self.name}.json"

    @property
    def bytecode_path(self) -> Path:
        """The path of the bytecode tree's record."""
        return self.workspace.records / f"{self.name}.bytecode.json"

    @property
    def pycache(self) -> Path:
        """The bytecode tree."""
        return self.workspace.pycache / self.name

    def is_built(self, location: Location, lock_id: str) -> bool:
        """Whether the environment of this lock was built there; it may have changed since."""
        return held_lock(location.folder) == lock_id and self.manifest_path.is_file()

    def sound(self, location: Location, lock_id: str, store: WheelStore) -> Manifest | None:
        """The manifest if every file of the environment matches it, else None."""
        manifest = Manifest.read(self.manifest_path) if self.is_built(location, lock_id) else None
        if manifest is None or manifest.lock != lock_id:
            return None
        with in_turn:
            differs, now = manifest.look(location.folder, store.ctimes, is_users=location.is_users)
        if differs:
            store.drop(manifest.wheels_with(set(differs)))
            return None
        # If the Python that it was built for is gone, the link to it is broken.
        if not location.python.exists():
            return None
        if now is not manifest:
            now.write(self.manifest_path)
            store.compared(now.wheels, now.files)
        return now

    def forget(self) -> None:
        """Remove the record; the next user rebuilds the environment."""
        for path in (self.manifest_path, self.bytecode_path):
            path.unlink(missing_ok=True)
        remove_tree(self.pycache)

    def remove(self, folder: Path) -> bool:
        """Remove the environment at `folder` unless it is in use; returns whether it was removed."""
        try:
            with acquire(self.kept, wait=False), acquire(self.in_use, wait=False):
                if not folder.is_dir():
                    return False
                self.discard(folder)
        except Busy:
            return False
        return True

    def discard(self, folder: Path) -> None:
        """Remove the environment at `folder`. Call it with the exclusive lock held."""
        # Renamed first: a half-removed folder must not be taken for an environment.
        doomed = self.workspace.building / f"{self.name}-removed"
        remove_tree(doomed)
        manifest = Manifest.read(self.manifest_path)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(doomed)
        self.forget()
        if manifest is not None:
            files = {key: {path: manifest.files[path] for path in paths} for key, paths in manifest.wheels.items()}
            from harness.environment.wheel_store import WheelStore

            WheelStore.named(self.workspace, manifest.kind).unlinked(doomed, files)
        remove_tree(doomed)


_LASTS_S = 120.0
_MOST = 8  # each has tens of thousands of files


@define
class RecentlyCompared:
    """The manifests of environments that matched them, by name, for `lasts_s` seconds; only the last eight are kept."""

    lasts_s: float = _LASTS_S
    clock: Callable[[], float] = time.monotonic
    _found: dict[str, tuple[float, Manifest]] = field(factory=dict, init=False)

    def note(self, name: str, manifest: Manifest) -> None:
        """Note that an environment matches its manifest now."""
        others = [item for item in self._found.items() if item[0] != name]
        self._found = dict([*others[1 - _MOST :], (name, (self.clock(), manifest))])

    def manifest(self, name: str, lock_id: str) -> Manifest | None:
        """The manifest that an environment matched a moment ago, None if it is too long ago or of another lock."""
        since, manifest = self._found.get(name, (0.0, None))
        if manifest is None or manifest.lock != lock_id or self.clock() - since >= self.lasts_s:
            return None
        return manifest

    def forget(self) -> None:
        """Forget all of them: environments share files, so a change in one may be a change in others."""
        self._found = {}
