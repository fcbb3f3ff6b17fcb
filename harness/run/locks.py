"""Locks between processes, by flock(2): shared for use, exclusive for changes; and folders that a process has claimed.

The kernel releases them however a process ends, and two threads of one process have a lock each.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from harness.run.launch import remove_tree
from harness.run.process import pause

_LOOK_S = 0.02
UNFINISHED = ".unfinished-"  # of a claimed folder beside finished ones


class Busy(Exception):
    """Another process holds the lock."""


class Hold:
    """A lock, held until `release`, the end of its context, or garbage collection."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Release it; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def acquire(path: Path, *, shared: bool = False, wait: bool = True) -> Hold:
    """Lock a file, created if missing, or a folder that exists.

    Raises `Busy` if `wait` is false and another process holds it, `Cancelled`, and `FileNotFoundError`.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise Busy(path) from None
                pause(_LOOK_S)
            else:
                return Hold(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def claimed_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder, removed at the end unless it was renamed; `remove_abandoned` spares it while its owner lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            hold = acquire(folder)
        except FileNotFoundError:  # another process cleaned up between the two calls
            continue
        if folder.is_dir():
            break
        hold.release()
    try:
        yield folder
    finally:
        remove_tree(folder)
        hold.release()


def put_in_place(folder: Path, fresh: Path) -> None:
    """Replace a folder by a fresh one, which is in a claimed folder; what another process made meanwhile stays."""
    with contextlib.suppress(FileNotFoundError):
        folder.rename(fresh.with_name("former"))
    with contextlib.suppress(OSError):
        fresh.rename(folder)


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder; `make` fills it the first time, while other processes wait, and an unfinished one is no folder.

    Raises what `make` raises.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with acquire(folder.parent / f"{folder.name}.lock"):
        if not folder.is_dir():
            with claimed_folder(folder.parent, UNFINISHED) as partial:
                make(partial)
                partial.rename(folder)
    return folder


def remove_abandoned(parent: Path, prefix: str = "", *, older_than_s: float = 0.0) -> list[Path]:
    """Remove the folders below `parent` that no living process claims; returns those."""
    removed = []
    for folder in list(parent.iterdir()):
        if not folder.name.startswith(prefix) or folder.is_symlink():
            continue
        with contextlib.suppress(Busy, OSError), acquire(folder, wait=False):
            if older_than_s and time.time() - folder.stat().st_mtime < older_than_s:
                continue
            if folder.is_dir():
                remove_tree(folder)
            else:
                folder.unlink()
            removed.append(folder)
    return removed
