"""The fewest changes that together flip a verdict.

It finds one necessary change after another by galloping and then halving over prefixes of the changes, sorted by
likelihood. This is based on QuickXplain (Junker, "QUICKXPLAIN: Preferred Explanations and Relaxations for
Over-Constrained Problems", AAAI 2004) with the galloping search of Bentley and Yao ("An almost optimal algorithm for
unbounded searching", 1976). A culprit at rank r costs about 2 log2(r) runs.

It finds several that mask each other in one search, where delta debugging would take twice as many runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.protocol import foresee, record

H = TypeVar("H", bound=Hashable)


@frozen
class FewestResult(Generic[H]):
    """The changes in `needed` flip the verdict together.

    `shown`: a run has proved it; otherwise it follows from the assumption that all changes are enough. `runs` counts
    all verdicts, `unresolved` the skips among them.
    """

    needed: frozenset[H]
    shown: bool
    runs: int
    unresolved: int


@frozen
class _State(Generic[H]):
    """The changes known to be needed, and the rest of the order: both together are enough. `wanted` is the next set."""

    needed: frozenset[H]
    rest: tuple[H, ...]
    wanted: frozenset[H] | None = None


class FewestChanges(Generic[H]):
    """Search for the fewest of `order` (the likeliest first) that together make the verdict `flipped`.

    It assumes that all of them together are enough, and that the empty set is not. Any verdict other than `flipped`
    counts as not enough, so a set that can't be judged is made larger. The result is minimal if every superset of a
    sufficient set is sufficient.

    Raises ValueError if there are no changes, or if one occurs twice.
    """

    def __init__(self, order: Sequence[H], *, flipped: Verdict = Verdict.GOOD) -> None:
        self._order = tuple(order)
        if not self._order or len(set(self._order)) != len(self._order):
            raise ValueError("the search needs at least one change, and each only once")
        self._flipped = flipped
        self._told: dict[frozenset[H], Verdict] = {}

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """The set to try next, then up to n - 1 sets that may follow it."""
        wanted = self._state(self._told).wanted
        if wanted is None or n < 1:
            return ()
        return (wanted, *(self._foreseen(n - 1, (wanted,)) if n > 1 else ()))

    def foresee(self, n: int) -> tuple[frozenset[H], ...]:
        """Up to n sets that may be requested next."""
        return self._foreseen(n, self.ask())

    def _foreseen(self, n: int, asked: tuple[frozenset[H], ...]) -> tuple[frozenset[H], ...]:
        def plan(supposed: Mapping[frozenset[H], Verdict]) -> tuple[frozenset[H], ...]:
            wanted = self._state({**self._told, **supposed}).wanted
            return () if wanted is None else (wanted,)

        return foresee(n, plan=plan, asked=asked)

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for unknown changes and for a second, different verdict."""
        if not candidate <= set(self._order):
            raise ValueError(f"unknown changes: {sorted(map(repr, candidate - set(self._order)))}")
        record(self._told, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether the fewest changes are known."""
        return self._state(self._told).wanted is None

    def remaining(self) -> int:
        """Upper estimate of the runs left, if only one more change is needed."""
        state = self._state(self._told)
        return 0 if state.wanted is None else 2 * max(len(state.rest), 1).bit_length()

    @property
    def result(self) -> FewestResult[H]:
        """The result so far; until the search ends, `needed` includes changes that may still be dropped."""
        state = self._state(self._told)
        needed = state.needed if state.wanted is None else state.needed | frozenset(state.rest)
        return FewestResult(
            needed=needed,
            shown=self._told.get(needed) is self._flipped,
            runs=len(self._told),
            unresolved=sum(verdict is Verdict.SKIP for verdict in self._told.values()),
        )

    def _state(self, told: Mapping[frozenset[H], Verdict]) -> _State[H]:
        """Follow the recorded verdicts as far as possible."""
        needed: frozenset[H] = frozenset()
        rest = self._order
        while rest:
            if needed:
                if needed not in told:
                    return _State(needed, rest, needed)
                if told[needed] is self._flipped:
                    break
            length, wanted = self._shortest(needed, rest, told)
            if wanted is not None:
                return _State(needed, rest, wanted)
            needed |= {rest[length - 1]}
            rest = rest[: length - 1]
        return _State(needed, ())

    def _shortest(
        self, needed: frozenset[H], rest: tuple[H, ...], told: Mapping[frozenset[H], Verdict]
    ) -> tuple[int, frozenset[H] | None]:
        """The length of the shortest prefix of `rest` that with `needed` is enough, or the set to try first."""
        below, enough = 0, len(rest)
        while enough - below > 1:
            # Gallop from the likeliest change, then halve the interval.
            galloping = enough == len(rest) and 2 * max(below, 1) < enough
            length = (2 * below if below else 1) if galloping else (below + enough) // 2
            wanted = needed | frozenset(rest[:length])
            if wanted not in told:
                return 0, wanted
            if told[wanted] is self._flipped:
                enough = length
            else:
                below = length
        return enough, None
