"""Runs the command on a terminal of its own, as a user at the keyboard would."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios

from support import ROOT, Harness

_LIMIT_S = 300


class Terminal:
    """One command on a terminal, with all that it has shown; `seen` is how much of it was looked at."""

    def __init__(self, harness: Harness, *words: str, columns: int = 400) -> None:
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))  # at 400, no line is scrolled
        own = {"SHELL": "/bin/bash", "TERM": "xterm", "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness", *words],
            cwd=harness.folder,
            env={**inherited, **own, **harness.environ},
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)
        self.screen, self.seen = "", 0

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self.parent, text.encode())

    def expect(self, text: str) -> str:
        """Wait until a text is shown, and return what was shown before it."""
        while text not in self.screen[self.seen :]:
            assert self._read(), f"it ended without {text!r}: {self.screen}"
        before, _, _ = self.screen[self.seen :].partition(text)
        self.seen += len(before) + len(text)
        return before

    def end(self) -> int:
        """Wait for the end and return the exit status."""
        while self._read():
            pass
        os.close(self.parent)
        return self.process.wait(timeout=_LIMIT_S)

    def _read(self) -> bool:
        """Read what is shown next; false at the end."""
        assert select.select([self.parent], [], [], _LIMIT_S)[0], f"nothing more was shown: {self.screen}"
        try:
            piece = os.read(self.parent, 65536)
        except OSError:  # Linux, once the other side is closed
            return False
        self.screen += piece.decode(errors="replace")
        return bool(piece)
