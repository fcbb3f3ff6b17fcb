"""Alone first: each part is tried alone, the likeliest first, and sets of changes only if none of them is enough.

A run of a part is cheap, and its verdict is about that part only: a part that can't be judged spoils no other one. If a
part with many changes is enough, such as a folder, the parts in it follow, those first whose verdict tells most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from harness.model.verdict import Verdict
from harness.search.narrowing import DeltaResult, Narrowing, entropy

H = TypeVar("H", bound=Hashable)


class AloneFirst(Generic[H]):
    """Search over sets of changes: `parts` in order, each completed by `complete`, then the sets of `sets`.

    A part is left out if all its changes were in a set that was GOOD. One that was skipped is tried again if `complete`
    has learned what it lacks. Within a part that was BAD, the parts are chosen by `weights`. A change that could not be
    judged alone is left out of sets, unless changes are only enough `together`: then a skip says nothing about one.
    """

    def __init__(
        self,
        parts: Iterable[frozenset[H]],
        complete: Callable[[frozenset[H]], frozenset[H]],
        sets: Narrowing[H],
        weights: Mapping[H, float] | None = None,
        *,
        together: bool = False,
    ) -> None:
        self._parts = list(parts)
        self._complete = complete
        self.sets = sets
        self._weights = weights or {}
        self._together = together
        self._told: dict[frozenset[H], Verdict] = {}
        self._cleared: set[H] = set()
        self._tried: dict[frozenset[H], frozenset[H]] = {}
        self._waiting: tuple[frozenset[H], ...] = ()
        self._held: frozenset[H] | None = None

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
        if verdict is Verdict.BAD and (self._held is None or len(candidate) < len(self._held)):
            self._held = candidate
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
        if self._parts and len(self._waiting) < n:
            self._waiting = self._found(n)
            if not self._waiting and not self._together:
                self.sets.leave_out(self._never_judged())
        return self._waiting[:n]

    def _found(self, n: int) -> tuple[frozenset[H], ...]:
        """The next parts; those that are not worth a run are dropped."""
        if self._held is not None:
            self._parts = self._telling_most(self._held)
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
        candidate = self._tried[part] = self._complete(part)
        if candidate in self._told or (self._held is not None and len(candidate) >= len(self._held)):
            return None
        return candidate

    def _telling_most(self, held: frozenset[H]) -> list[frozenset[H]]:
        """The parts inside a set that is enough, those first whose verdict tells most about the rest."""
        left = {change: self._weights.get(change, 1.0) for change in held - self._cleared}
        total = sum(left.values()) or 1.0
        told = {
            part: entropy(sum(left.get(change, 0.0) for change in part) / total) for part in self._parts if part < held
        }
        return sorted(told, key=lambda part: -told[part])

    def _never_judged(self) -> frozenset[H]:
        """The changes that were skipped alone, and were in no set that could be judged."""
        skipped = {
            change
            for part, candidate in self._tried.items()
            if len(part) == 1 and self._told.get(candidate) is Verdict.SKIP
            for change in part
        }
        return frozenset(skipped - self._cleared)
