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
    """Knows the checks in progress."""

    longest_s: float = _LONGEST_S
    _running: set[object] = field(factory=set, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Make others wait as long as the context lasts."""
        check = object()
        with self._changed:
            self._running.add(check)
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(check)
                self._changed.notify_all()

    def wait(self, cancel: threading.Event | None = None) -> None:
        """Wait until the checks in progress have ended, for at most `longest_s` seconds, or until `cancel` is set.

        It does not wait for those that begin later: with many lanes, there may always be one.
        """
        until = time.monotonic() + self.longest_s
        with self._changed:
            now = frozenset(self._running)
            while (
                not now.isdisjoint(self._running)
                and time.monotonic() < until
                and not (cancel is not None and cancel.is_set())
            ):
                self._changed.wait(_LOOK_S)
