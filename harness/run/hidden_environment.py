"""Hides this process's environment from other processes of the same user, which could read it under /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_PR_SET_DUMPABLE = 4  # prctl(2): without it /proc/PID/environ and /proc/PID/mem belong to root
_ENV_START, _ENV_END = 49, 50  # proc(5): fields of /proc/PID/stat, counted from 0


def hide_environment() -> None:
    """Clear the memory that the kernel shows as /proc/PID/environ; os.environ and getenv keep their values.

    Otherwise a repro without a sandbox could read every token of the user's shell. setproctitle(3) overwrites the same
    memory. Does nothing on systems other than Linux, or if the memory does not look as expected.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        shown = Path("/proc/self/environ").read_bytes()
        # The program name is in parentheses and may contain spaces.
        fields = [b"", b"", *Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()]
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        if not shown or end - start != len(shown) or ctypes.string_at(start, len(shown)) != shown:
            return
        for name, value in os.environ.items():
            os.putenv(name, value)  # from now on the C library keeps its own copy
        ctypes.memset(start, 0, len(shown))
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
