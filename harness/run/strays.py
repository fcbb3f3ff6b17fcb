"""Kills the processes of a run whose guard was killed; it finds them by the run's environment variables."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_GIVE_UP_S = 10.0


def end_strays(env: Mapping[str, str]) -> None:
    """Kill all processes with these HOME and TMPDIR, which are unique to a run, until none is left.

    Does nothing without /proc.
    """
    if not (env.get("HOME") and env.get("TMPDIR")):
        return
    marks = {os.fsencode(f"{name}={env[name]}") for name in ("HOME", "TMPDIR")}
    until = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < until:
        strays = list(_carrying(marks))
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _carrying(marks: set[bytes]) -> Iterator[int]:
    own = os.getpid()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = set((folder / "environ").read_bytes().split(b"\0"))
        except OSError:  # it has ended, or belongs to another user
            continue
        if marks <= variables and int(folder.name) != own:
            yield int(folder.name)
