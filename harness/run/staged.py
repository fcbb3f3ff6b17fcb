"""Reads what the first process in a sandbox (inside/stage.py) reports to the guard. Standard library only.

bubblewrap returns only an exit code, which does not distinguish a signal from an exit code of 128 or more.
"""

from __future__ import annotations

import contextlib
import os


class Stage:
    """The pipe on which inside/stage.py reports on the command that it starts."""

    def __init__(self) -> None:
        self._told, self.tell_end = os.pipe()
        os.set_blocking(self._told, False)
        os.set_inheritable(self.tell_end, True)
        self._said = b""
        self.child = 0

    def result(self, sandbox_status: int | None) -> tuple[int, int | None]:
        """Return the errno if the command could not be started, else 0, and its wait status, None if unknown."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._told, 1024):
                self._said += piece
        problem, status = 0, None
        for word in self._said.split():
            if word.startswith(b"p"):
                self.child = int(word[1:])
            elif word.startswith(b"e"):
                problem = int(word[1:])
            else:
                status = int(word[1:])
        # The whole sandbox was killed, and the command with it.
        if status is None and sandbox_status is not None and os.WIFSIGNALED(sandbox_status):
            status = sandbox_status
        return problem, status
