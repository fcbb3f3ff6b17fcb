"""Delta debugging, to compare with: a minimal set of changes that still causes the bug.

This is ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002) with
its three outcomes: BAD fails, GOOD passes, SKIP is unresolved.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.narrowing import NarrowingResult
from harness.search.protocol import record

H = TypeVar("H", bound=Hashable)

_KEPT_SWEEPS = 64


@frozen
class _Round(Generic[H]):
    """The current BAD set, and its number of blocks."""

    held: frozenset[H]
    blocks: int
    over: bool = False


class DeltaDebugging(Generic[H]):
    """Search over sets of changes; a candidate is the good side with these changes applied.

    All `changes` together must be BAD, and the empty set GOOD; neither is run. A verdict on a set says nothing about
    its subsets or supersets. The search always ends, even if verdicts contradict each other: each step shrinks the
    current set or its blocks.

    Raises ValueError if there are no changes, or if one occurs twice.
    """

    def __init__(self, changes: Sequence[H]) -> None:
        self._order = tuple(changes)
        self._all = frozenset(self._order)
        if not self._order or len(self._all) != len(self._order):
            raise ValueError("delta debugging needs at least one change, and each only once")
        self._told: dict[frozenset[H], Verdict] = {}
        self._sweeps: dict[_Round[H], dict[frozenset[H], int]] = {}
        self._round = self._cut(self._all, 2)

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """Up to n sets of the current round."""
        return self._untold(self._round, self._told)[: max(n, 0)]

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict.

        Raises ValueError for unknown changes, for a second, different verdict, and if all changes together are not BAD
        or the empty set is not GOOD.
        """
        if not candidate <= self._all:
            raise ValueError(f"unknown changes: {sorted(map(repr, candidate - self._all))}")
        if candidate in (frozenset(), self._all):
            expected = Verdict.BAD if candidate else Verdict.GOOD
            if verdict is not expected:
                raise ValueError(f"{'all changes' if candidate else 'no change'} must be {expected.value}")
            return
        record(self._told, candidate, verdict)
        self._round = self._advance(self._round, self._told)

    @property
    def done(self) -> bool:
        """Whether the current set can't be made smaller."""
        return self._round.over

    @property
    def result(self) -> NarrowingResult[H]:
        """The smallest BAD set so far, and what the runs prove about it."""
        held = self._round.held
        tried = {change: self._verdict(held - {change}) for change in held}
        return NarrowingResult(
            minimal=held,
            is_minimal=all(verdict in (Verdict.GOOD, Verdict.SKIP) for verdict in tried.values()),
            unproven=frozenset(change for change, verdict in tried.items() if verdict is Verdict.SKIP),
            unresolved=sum(verdict is Verdict.SKIP for verdict in self._told.values()),
            runs=len(self._told),
        )

    def _verdict(self, candidate: frozenset[H]) -> Verdict | None:
        return self._told.get(candidate) if candidate else Verdict.GOOD

    def _untold(self, current: _Round[H], told: Mapping[frozenset[H], Verdict]) -> tuple[frozenset[H], ...]:
        if current.over:
            return ()
        return tuple(candidate for candidate in self._sweep(current) if candidate not in told)

    def _advance(self, current: _Round[H], told: Mapping[frozenset[H], Verdict]) -> _Round[H]:
        """Follow the recorded verdicts as far as possible.

        If several sets of one round are BAD, the one recorded first decides, so that a late verdict from another lane
        never reverts a step.
        """
        while not current.over:
            sweep = self._sweep(current)
            known = [candidate for candidate in sweep if candidate in told]
            failing = {candidate for candidate in known if told[candidate] is Verdict.BAD}
            if failing:
                first = failing.pop() if len(failing) == 1 else next(c for c in told if c in failing)
                current = self._cut(first, sweep[first])
            elif len(known) < len(sweep):
                break
            elif current.blocks < len(current.held):
                current = self._cut(current.held, max(2, 2 * current.blocks))
            else:
                current = _Round(current.held, current.blocks, over=True)
        return current

    def _cut(self, held: frozenset[H], blocks: int) -> _Round[H]:
        return _Round(held, min(blocks, len(held)), over=len(held) == 1)

    def _sweep(self, current: _Round[H]) -> dict[frozenset[H], int]:
        """The candidates of a round in order, each with the number of blocks of the next round if it is BAD."""
        if current not in self._sweeps:
            if len(self._sweeps) > _KEPT_SWEEPS:  # earlier rounds are never needed again
                self._sweeps.clear()
            self._sweeps[current] = self._new_sweep(current.held, current.blocks)
        return self._sweeps[current]

    def _new_sweep(self, held: frozenset[H], count: int) -> dict[frozenset[H], int]:
        ordered = [change for change in self._order if change in held]
        edges = [i * len(ordered) // count for i in range(count + 1)]
        blocks = [frozenset(ordered[a:b]) for a, b in pairwise(edges)]
        sweep = dict.fromkeys(blocks, 2)
        for block in blocks:
            sweep.setdefault(held - block, max(count - 1, 2))
        return {candidate: then for candidate, then in sweep.items() if 0 < len(candidate) < len(held)}
