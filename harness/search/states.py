"""The states of the positions of a search, for display."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.verdict import Verdict


class PositionState(enum.StrEnum):
    """What a search knows about a position; `symbol` is its letter in a picture such as [G, ?, ?, B]."""

    UNTRIED = "untried"
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    EXCLUDED = "excluded"  # not run, and its verdict can no longer matter

    @property
    def symbol(self) -> str:
        """One character for display."""
        return _SYMBOLS[self]


_SYMBOLS = {
    PositionState.UNTRIED: "?",
    PositionState.GOOD: "G",
    PositionState.BAD: "B",
    PositionState.SKIP: "S",
    PositionState.EXCLUDED: "-",
}


def state_of(verdict: Verdict | None, *, matters: bool) -> PositionState:
    """The state of a position with this verdict (None: not run); `matters`: its verdict can still matter."""
    if verdict is not None:
        return PositionState(verdict.value)
    return PositionState.UNTRIED if matters else PositionState.EXCLUDED
