"""Memory of this machine for runs that go on at once: one starts beside others only if all of them fit."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from attrs import define, field

from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXPECTED = 4 * 2**30  # bytes, before any run has ended
_LOOK_S = 0.25


def _available() -> int:
    import psutil  # type: ignore[import-untyped,unused-ignore]  # most commands run nothing

    return int(psutil.virtual_memory().available)


@define
class MemoryGate:
    """Lets a run start if no other one goes on, or if as much memory as all of them may need is available.

    Each is expected to need as much as the largest run so far. `available` tells how many bytes are free.
    """

    available: Callable[[], int] = _available
    _largest: int = field(default=0, init=False)
    _running: int = field(default=0, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @contextlib.contextmanager
    def entered(self, cancel: threading.Event | None = None) -> Iterator[None]:
        """Wait for memory, and hold it while the context lasts. Raises `Cancelled` once `cancel` is set."""
        with self._changed:
            while self._running and not self._has_room():
                if cancel is not None and cancel.is_set():
                    raise Cancelled
                self._changed.wait(_LOOK_S)
            self._running += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def note(self, peak: int) -> None:
        """Note the peak memory of a run, in bytes."""
        with self._changed:
            self._largest = max(self._largest, peak)

    def wait_for_run(self, otherwise: threading.Event) -> None:
        """Wait until a run goes on, or until `otherwise` is set."""
        with self._changed:
            while not self._running and not otherwise.is_set():
                self._changed.wait(_LOOK_S)

    def _has_room(self) -> bool:
        # What goes on may have taken little of its memory yet, so all of it must be free.
        return self.available() >= (self._running + 1) * (self._largest or _EXPECTED)
