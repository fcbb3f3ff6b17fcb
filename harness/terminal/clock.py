"""How long runs have taken, and what that means for those that are left."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)

_UNKNOWN_RUN_S = 15.0  # only until the first run has been timed


class Clock(Generic[C]):
    """Times runs of candidates; with several at once it measures how often one ends, not how long one takes."""

    def __init__(self) -> None:
        self._begun: dict[C, float] = {}
        self._taken: list[float] = []
        self._last = time.monotonic()

    def started(self, candidate: C) -> None:
        """A candidate's run has begun."""
        self._begun[candidate] = time.monotonic()

    def since(self, candidate: C) -> str:
        """For how long it has been running, "" if it is not."""
        return f"{time.monotonic() - self._begun[candidate]:.0f} s" if candidate in self._begun else ""

    def ended(self, candidate: C, *, cached: bool) -> None:
        """A candidate has its verdict; `cached` ones took no time that tells anything."""
        now = time.monotonic()
        if not cached:
            self._taken.append(now - self._last)  # with what was installed before it
        self._last = now
        self._begun.pop(candidate, None)

    def estimate(self, runs: int) -> str:
        """How long so many more runs will take, in words that say how much is known of it."""
        mean = sum(self._taken) / len(self._taken) if self._taken else _UNKNOWN_RUN_S
        return f"{'about' if self._taken else 'perhaps'} {duration(runs * mean)}"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
