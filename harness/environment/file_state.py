"""The state of files, recorded once and compared later.

A write in place updates a file's change time, even if size and modification time are restored. A new hard link does
too. If only the change time differs, the content decides.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
