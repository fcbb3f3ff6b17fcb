"""Limits parallel runs by memory: a run starts beside others only if all fit into the machine's memory."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from attrs import define, field

from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXPECTED = 4 * 2**30  # bytes per run, until the peak of a run is known
_LOOK_S = 0.25


def _available() -> int:
    import psutil  # type: ignore[import-untyped,unused-ignore]  # imported late: most commands run nothing

    return int(psutil.virtual_memory().available)


@define
class MemoryGate:
    """Lets a run start if no other one is running, or if there is enough available memory for all of them.

    Each run is expected to need as much as the largest one so far. `available` returns the available memory in bytes.
    """

    available: Callable[[], int] = _available
    _largest: int = field(default=0, init=False)
    _running: int = field(default=0, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @contextlib.contextmanager
    def entered(self, cancel: threading.Event | None = None) -> Iterator[None]:
        """Wait for memory, and reserve it as long as the context lasts. Raises `Cancelled` if `cancel` is set."""
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
        """Record the peak memory of a run, in bytes."""
        with self._changed:
            self._largest = max(self._largest, peak)

    def wait_for_run(self, otherwise: threading.Event) -> None:
        """Wait until a run has started, or until `otherwise` is set."""
        with self._changed:
            while not self._running and not otherwise.is_set():
                self._changed.wait(_LOOK_S)

    def _has_room(self) -> bool:
        # Runs may not have allocated most of their memory yet, so there must be enough for all of them.
        return self.available() >= (self._running + 1) * (self._largest or _EXPECTED)
