"""What the first process inside a sandbox (inside/stage.py) tells the guard: standard library only.

bubblewrap gives an exit code alone, in which a crash by a signal and an exit with 128 and more look the same.
"""

from __future__ import annotations

import contextlib
import os


class Stage:
    """What the first process inside a sandbox (inside/stage.py) tells out here of the command that it starts there."""

    def __init__(self) -> None:
        self._told, self.tell_end = os.pipe()
        os.set_blocking(self._told, False)
        os.set_inheritable(self.tell_end, True)
        self._said = b""
        self.child = 0

    def heard(self, sandbox_status: int | None) -> tuple[int, int | None]:
        """The errno if the command could not be started, and its status; None if nothing told of its end."""
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
        # The whole sandbox was killed: that is how the command ended, too.
        if status is None and sandbox_status is not None and os.WIFSIGNALED(sandbox_status):
            status = sandbox_status
        return problem, status
