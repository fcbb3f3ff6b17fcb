"""Lets the check of an environment before a run finish before other probes are prepared.

A check looks at tens of thousands of files. Beside another busy thread it takes several times as long, and the run
waits for it, while there is time to prepare other probes during the run.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_S = 3.0  # a check that takes longer reads files again, mostly outside of Python
_LOOK_S = 0.25


@define
class Checks:
    """Counts the checks in progress."""

    longest_s: float = _LONGEST_S
    _running: int = field(default=0, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Make others wait as long as the context lasts."""
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def wait(self, cancel: threading.Event | None = None) -> None:
        """Wait until no check is in progress, for at most `longest_s` seconds, or until `cancel` is set."""
        until = time.monotonic() + self.longest_s
        with self._changed:
            while self._running and time.monotonic() < until and not (cancel is not None and cancel.is_set()):
                self._changed.wait(_LOOK_S)
