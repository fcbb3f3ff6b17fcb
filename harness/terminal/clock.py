"""Measures how long runs take, and estimates how long the rest takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

_UNKNOWN_RUN_S = 15.0  # until the first run was timed


class Clock:
    """Times runs by their candidates."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, float] = {}
        self._taken: list[float] = []
        self._last = time.monotonic()

    def started(self, candidate: Hashable) -> None:
        """A run starts now."""
        self._begun[candidate] = time.monotonic()

    def since(self, candidate: Hashable) -> str:
        """How long it has been running, as text; "" if it is not."""
        return f"{time.monotonic() - self._begun[candidate]:.0f} s" if candidate in self._begun else ""

    def ended(self, candidate: Hashable, *, cached: bool) -> None:
        """A run ended, or the store had its answer."""
        now = time.monotonic()
        if not cached:
            self._taken.append(now - self._last)  # including its installation
        self._last = now
        self._begun.pop(candidate, None)

    def estimate(self, runs: int) -> str:
        """How long this many runs will take, by the mean time between ends so far."""
        mean = sum(self._taken) / len(self._taken) if self._taken else _UNKNOWN_RUN_S
        return f"{'about' if self._taken else 'perhaps'} {duration(runs * mean)}"


class Pace:
    """Times a sequence of equal steps."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def left(self, done: int, count: int) -> str:
        """The progress and remaining time as text; no time before the first step is done."""
        if done == 0:
            self._begun = time.monotonic()
            return f"0 of {count}"
        each = (time.monotonic() - self._begun) / done
        return f"{done} of {count}, about {duration((count - done) * each)} left"


def duration(seconds: float) -> str:
    """Seconds in a readable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
