"""Takes the environment of this process out of what other processes of the same user can read of it under /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_PR_SET_DUMPABLE = 4  # prctl(2): without it /proc/PID/environ and /proc/PID/mem belong to root
_ENV_START, _ENV_END = 49, 50  # proc(5), fields of /proc/PID/stat counted from 0


def hide_environment() -> None:
    """Clear the block of memory that the kernel shows as /proc/PID/environ; os.environ and getenv stay as they are.

    A repro that runs without a sandbox reads it else, with every token of the user's shell. What cleans up behind a
    setproctitle(3) does the same. Where this is not Linux, or anything looks odd, nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        shown = Path("/proc/self/environ").read_bytes()
        # The name of the program, in parentheses, may hold spaces.
        fields = [b"", b"", *Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()]
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        if not shown or end - start != len(shown) or ctypes.string_at(start, len(shown)) != shown:
            return
        for name, value in os.environ.items():
            os.putenv(name, value)  # the C library keeps its own copy from now on
        ctypes.memset(start, 0, len(shown))
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
