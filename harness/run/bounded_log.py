"""Keeps the output of a run up to a limit: half from its start, half from its end, and a note on how much is cut.

Standard library only. The start and end of the output identify a regression; a printing loop makes gigabytes a minute.
"""

# Importing pathlib would take as long as all the rest of this module.

from __future__ import annotations

import os


class BoundedLog:
    """Writes at most `keep` bytes of its input to a file, and a line that says how many were left out.

    A full disk raises nothing: `error` has the errno, and the rest is left out.
    """

    def __init__(self, path: str, keep: int) -> None:
        # The reader has already created the file; never follow a link that took its place.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._head_left = keep - keep // 2
        self._tail_limit = keep // 2
        self._tail = bytearray()
        self.size = 0
        self.dropped = 0
        self.error = 0

    def add(self, data: bytes) -> None:
        """Add more output."""
        self.size += len(data)
        if self._head_left:
            head, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._write(head)
        self._tail += data
        if len(self._tail) > 2 * self._tail_limit:
            self._cut_tail()

    def finish(self) -> None:
        """Write the tail; call nothing after this."""
        if len(self._tail) > self._tail_limit:
            self._cut_tail()
        if self.dropped:
            self._write(b"\n[harness: %d bytes of output left out here]\n" % self.dropped)
        self._write(bytes(self._tail))
        os.close(self._file)

    def _cut_tail(self) -> None:
        over = len(self._tail) - self._tail_limit
        del self._tail[:over]
        self.dropped += over

    def _write(self, data: bytes) -> None:
        try:
            while data and not self.error:
                data = data[os.write(self._file, data) :]
        except OSError as problem:
            self.error = problem.errno or 1
