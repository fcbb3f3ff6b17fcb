"""The fewest changes that flip a verdict, by prefixes: galloping, then halving, one necessary change after another.

After QuickXplain (Junker, "QUICKXPLAIN: Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI
2004) with the galloping search of Bentley and Yao ("An almost optimal algorithm for unbounded searching", 1976): with
the changes in the order of likelihood, a culprit that stands at rank r costs about 2 log2(r) runs. Delta debugging asks
which changes bring a failure; this asks which must be held back together for it to go, and finds several that mask
each other in one search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.foresight import foresee
from harness.search.protocol import record

Candidate = frozenset[str]

_CHANCES = {Verdict.GOOD: 0.5, Verdict.BAD: 0.5}


@frozen
class FewestResult:
    """`needed` flips the verdict together; `shown` says that a run showed that, and not the assumption about all."""

    needed: Candidate
    shown: bool
    runs: int
    unresolved: int


@frozen
class _State:
    """What is known to be needed, and the rest of the order, which with it is enough."""

    needed: Candidate
    rest: tuple[str, ...]
    wanted: Candidate | None = None


class FewestChanges:
    """Search for the fewest of `order` (the likeliest first) that together make the verdict `flipped`.

    All of them together are taken to be enough, and none of them not. Whatever is not `flipped` counts as not enough: a
    set that can't be judged is made larger. What is found is minimal where enough stays enough with more.
    Raises ValueError without changes, or if one occurs twice.
    """

    def __init__(self, order: Sequence[str], *, flipped: Verdict = Verdict.GOOD) -> None:
        self._order = tuple(order)
        if not self._order or len(set(self._order)) != len(self._order):
            raise ValueError("the search needs at least one change, and each only once")
        self._flipped = flipped
        self._told: dict[Candidate, Verdict] = {}

    def ask(self, n: int = 1) -> tuple[Candidate, ...]:
        """The set to try next, and with more lanes those that may follow it."""
        wanted = self._state(self._told).wanted
        if wanted is None or n < 1:
            return ()
        return (wanted, *(self._foreseen(n - 1, (wanted,)) if n > 1 else ()))

    def foresee(self, n: int) -> tuple[Candidate, ...]:
        """Up to n sets that may be asked next."""
        return self._foreseen(n, self.ask())

    def _foreseen(self, n: int, asked: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        def plan(supposed: Mapping[Candidate, Verdict]) -> Candidate | None:
            return self._state({**self._told, **supposed}).wanted

        return foresee(n, plan=plan, chances=lambda _: self._chances(), asked=asked)

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for unknown changes and for a second, different verdict."""
        if not candidate <= set(self._order):
            raise ValueError(f"unknown changes: {sorted(candidate - set(self._order))}")
        record(self._told, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether the fewest are known."""
        return self._state(self._told).wanted is None

    def remaining(self) -> int:
        """Upper estimate of the runs left for one more needed change."""
        state = self._state(self._told)
        return 0 if state.wanted is None else 2 * max(len(state.rest), 1).bit_length()

    @property
    def result(self) -> FewestResult:
        """The fewest so far; while the search goes on, with what may still be dropped from them."""
        state = self._state(self._told)
        needed = state.needed if state.wanted is None else state.needed | frozenset(state.rest)
        return FewestResult(
            needed=needed,
            shown=self._told.get(needed) is self._flipped,
            runs=len(self._told),
            unresolved=sum(verdict is Verdict.SKIP for verdict in self._told.values()),
        )

    def _chances(self) -> Mapping[Verdict, float]:
        other = Verdict.BAD if self._flipped is Verdict.GOOD else Verdict.GOOD
        return {self._flipped: _CHANCES[Verdict.GOOD], other: _CHANCES[Verdict.BAD]}

    def _state(self, told: Mapping[Candidate, Verdict]) -> _State:
        """Follow the verdicts as far as they lead."""
        needed: Candidate = frozenset()
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
        self, needed: Candidate, rest: tuple[str, ...], told: Mapping[Candidate, Verdict]
    ) -> tuple[int, Candidate | None]:
        """The length of the shortest prefix of `rest` that with `needed` is enough, or the set that must be tried."""
        below, enough = 0, len(rest)
        while enough - below > 1:
            # Gallop from the likeliest, then halve what lies between.
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
