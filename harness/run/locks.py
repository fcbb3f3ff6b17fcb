"""Locks between processes, by flock(2): shared for use, exclusive for changes.

The kernel releases them however a process ends, and two threads of one process have a lock each.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from harness.run.process import pause

_LOOK_S = 0.02


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
