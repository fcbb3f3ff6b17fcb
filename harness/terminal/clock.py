"""Measures how long runs take, and estimates the remaining time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

_UNKNOWN_RUN_S = 15.0  # the estimate before the first run has ended


class Clock:
    """Times runs, each identified by its candidate."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, float] = {}
        self._taken: list[float] = []
        self._last = time.monotonic()

    def started(self, candidate: Hashable) -> None:
        """Note that a run starts."""
        self._begun[candidate] = time.monotonic()

    def since(self, candidate: Hashable) -> str:
        """How long a candidate has been running, as text; "" if it is not running."""
        return f"{time.monotonic() - self._begun[candidate]:.0f} s" if candidate in self._begun else ""

    def ended(self, candidate: Hashable, *, cached: bool) -> None:
        """Note that a run ended, or that the store had its answer (`cached`)."""
        now = time.monotonic()
        if not cached:
            self._taken.append(now - self._last)  # including its installation
        self._last = now
        self._begun.pop(candidate, None)

    def estimate(self, runs: int) -> str:
        """How long this many runs will take, from the mean time between the ends of runs so far."""
        mean = sum(self._taken) / len(self._taken) if self._taken else _UNKNOWN_RUN_S
        return f"{'about' if self._taken else 'perhaps'} {duration(runs * mean)}"


class Pace:
    """Times a sequence of equal steps."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def left(self, done: int, count: int) -> str:
        """The progress and the remaining time as text; without a time until the first step is done."""
        if done == 0:
            self._begun = time.monotonic()
            return f"0 of {count}"
        each = (time.monotonic() - self._begun) / done
        return f"{done} of {count}, about {duration((count - done) * each)} left"


def duration(seconds: float) -> str:
    """Seconds as text, in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
