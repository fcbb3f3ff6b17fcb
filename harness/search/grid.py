"""A grid: every position is run once, in order; verdicts do not change the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.search.protocol import record
from harness.search.states import PositionState, state_of

if TYPE_CHECKING:
    from harness.model.verdict import Verdict


class Grid:
    """Search over positions 0 to count - 1; its candidates are positions. Raises ValueError if `count` is negative."""

    def __init__(self, count: int) -> None:
        if count < 0:
            raise ValueError("a grid can't have fewer than no positions")
        self._count = count
        self._told: dict[int, Verdict] = {}

    def ask(self, n: int = 1) -> tuple[int, ...]:
        """The first n positions without a verdict."""
        return self._untold()[: max(n, 0)]

    def foresee(self, n: int) -> tuple[int, ...]:
        """The n positions without a verdict after the first one."""
        return self._untold()[1 : 1 + max(n, 0)]

    def tell(self, candidate: int, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict."""
        if not 0 <= candidate < self._count:
            raise ValueError(f"position {candidate} is not in a grid of {self._count}")
        record(self._told, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether every position has a verdict."""
        return len(self._told) == self._count

    def remaining(self) -> int:
        """The number of positions without a verdict."""
        return self._count - len(self._told)

    @property
    def result(self) -> dict[int, Verdict]:
        """The recorded verdicts, by position."""
        return dict(sorted(self._told.items()))

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display."""
        return tuple(state_of(self._told.get(position), matters=True) for position in range(self._count))

    def _untold(self) -> tuple[int, ...]:
        return tuple(position for position in range(self._count) if position not in self._told)
