"""What a run prints, kept as far as a limit: its first half and its last, and how much lay between.

Standard library only. A regression is told by how a run begins and ends; a loop that prints makes gigabytes in seconds.
"""

# Importing pathlib would cost as much time as all else here.

from __future__ import annotations

import os


class BoundedLog:
    """Writes to a file at most `keep` bytes of all that is added, and a line that says how many were left out.

    A full disk does not raise: it is told by `error`, an errno, and the rest is left out.
    """

    def __init__(self, path: str, keep: int) -> None:
        # The file is there already, made by whoever wants to read it; a link in its place is none of ours.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._head_left = keep - keep // 2
        self._tail_limit = keep // 2
        self._tail = bytearray()
        self.size = 0
        self.dropped = 0
        self.error = 0

    def add(self, data: bytes) -> None:
        """Take what was printed next."""
        self.size += len(data)
        if self._head_left:
            head, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._write(head)
        self._tail += data
        if len(self._tail) > 2 * self._tail_limit:
            self._cut_tail()

    def finish(self) -> None:
        """Write the tail; nothing can be added any more."""
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
