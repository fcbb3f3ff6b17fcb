"""Locks between processes that share one cache: shared for use, exclusive for changes.

They are flock(2) locks, so the kernel releases them however a process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.run.launch import remove_tree
from harness.run.process import Cancelled

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

_LOOK_S = 0.02


class Busy(Exception):
    """Another process holds the lock."""


class Hold:
    """A lock, held until `release` or garbage collection."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Release it; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


def acquire(path: Path, *, shared: bool = False, wait: bool = True, cancel: threading.Event | None = None) -> Hold:
    """Lock a file, created if missing, or a folder that exists.

    Raises `Busy` if `wait` is false and another process holds it, `Cancelled` once `cancel` is set, and
    `FileNotFoundError`.
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
                if cancel is not None and cancel.is_set():
                    raise Cancelled from None
                time.sleep(_LOOK_S)
            else:
                return Hold(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def locked(
    path: Path, *, shared: bool = False, wait: bool = True, cancel: threading.Event | None = None
) -> Iterator[None]:
    """`acquire` while the context lasts."""
    hold = acquire(path, shared=shared, wait=wait, cancel=cancel)
    try:
        yield
    finally:
        hold.release()


@contextlib.contextmanager
def claimed_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder, removed at the end; `remove_abandoned` leaves it alone while its owner lives."""
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


def remove_abandoned(parent: Path, prefix: str = "") -> list[Path]:
    """Remove the folders below `parent` that no living process claims; returns those."""
    removed = []
    for folder in list(parent.iterdir()):
        if not folder.name.startswith(prefix) or folder.is_symlink():
            continue
        with contextlib.suppress(Busy, OSError), locked(folder, wait=False):
            if folder.is_dir():
                remove_tree(folder)
            else:
                folder.unlink()
            removed.append(folder)
    return removed


def is_claimed(folder: Path) -> bool:
    """Whether a living process claims a folder."""
    try:
        acquire(folder, wait=False).release()
    except Busy:
        return True
    except OSError:
        return False
    return False
