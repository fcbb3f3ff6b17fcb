"""Alone first: each part is tried alone, the likeliest first, and sets of changes only if none of them is enough.

A run of a part is cheap, and its verdict is about that part only: a part that can't be judged spoils no other one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from harness.model.verdict import Verdict
from harness.search.narrowing import DeltaResult, Narrowing

H = TypeVar("H", bound=Hashable)


class AloneFirst(Generic[H]):
    """Search over sets of changes: `parts` in order, each completed by `complete`, then the sets of `sets`.

    A part is left out if all its changes were in a set that was GOOD. One that was skipped is tried again if `complete`
    has learned what it lacks. The first BAD part is narrowed by `sets`.
    """

    def __init__(
        self,
        parts: Iterable[frozenset[H]],
        complete: Callable[[frozenset[H]], frozenset[H]],
        sets: Narrowing[H],
    ) -> None:
        self._parts = list(parts)
        self._complete = complete
        self.sets = sets
        self._told: dict[frozenset[H], Verdict] = {}
        self._cleared: set[H] = set()
        self._waiting: tuple[frozenset[H], ...] = ()
        self._shown = False

    @property
    def are_parts_left(self) -> bool:
        """Whether parts are still tried alone."""
        return bool(self._next_parts(1))

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """Up to n parts; when none is left, up to n sets."""
        return self._next_parts(n) or self.sets.ask(n)

    def foresee(self, n: int) -> tuple[frozenset[H], ...]:
        """Up to n candidates that follow if the first one is GOOD."""
        asked = self._next_parts(1)
        return self._next_parts(1 + n)[1:] if asked else self.sets.foresee(n)

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for unknown changes and for a second, different verdict."""
        self.sets.tell(candidate, verdict)
        self._told[candidate] = verdict
        self._shown |= verdict is Verdict.BAD
        if verdict is Verdict.GOOD:
            self._cleared |= candidate
        self._waiting = ()

    def refresh(self) -> None:
        """Plan again, because `complete` has learned something."""
        self._waiting = ()
        self.sets.refresh()

    @property
    def done(self) -> bool:
        """Whether no part and no smaller set is left to try."""
        return not self._next_parts(1) and self.sets.done

    def remaining(self) -> int:
        """Upper estimate of the runs left."""
        return len(self._parts) if self._next_parts(1) else self.sets.remaining()

    @property
    def result(self) -> DeltaResult[H]:
        """The smallest BAD set so far."""
        return self.sets.result

    def _next_parts(self, n: int) -> tuple[frozenset[H], ...]:
        if self._shown or not self._parts:
            return ()
        if len(self._waiting) < n:
            self._waiting = self._found(n)
        return self._waiting[:n]

    def _found(self, n: int) -> tuple[frozenset[H], ...]:
        found: dict[frozenset[H], None] = {}
        position = 0
        while position < len(self._parts) and len(found) < n:
            part = self._parts[position]
            candidate = self._candidate(part)
            if candidate is None:
                del self._parts[position]
                continue
            found[candidate] = None
            position += 1
        return tuple(found)

    def _candidate(self, part: frozenset[H]) -> frozenset[H] | None:
        """The set to try for a part, None if it is not worth a run."""
        if part <= self._cleared:
            return None
        candidate = self._complete(part)
        return candidate if candidate not in self._told else None
