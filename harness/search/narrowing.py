"""Narrowing: the smallest set of changes that still makes the difference, by likelihood and ties.

A kin of delta debugging that learns while it goes. Like ProbDD (Wang et al., "Probabilistic Delta Debugging",
ESEC/FSE 2021) it takes the set that promises to tell most; like CDD (Zhang et al., arXiv 2408.04735) it needs no more
for that than counters; like arXiv 2506.11614 it does not take for granted that more of the changes bring more of the
difference. First one change is supposed to be enough, and the weight of the suspects is halved with each run; where
no single one is, they are bisected in the order of likelihood as in QuickXplain (Junker, AAAI 2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from harness.model.verdict import Verdict
from harness.search.delta import DeltaResult
from harness.search.protocol import record

H = TypeVar("H", bound=Hashable)

_FEW = 3  # so many changes are left out one by one at once; more are bisected before
_LOOKED_AT = 400  # suspects for one set
_DOUBT = 0.02
_SIDESTEPS = 4  # so many neighbours of a skipped middle are tried
_EXPECTED_SKIPS = 1.0  # before anything has run: this many skips in sets of altogether
_EXPECTED_SIZE = 30.0  # so many changes


class Narrowing(Generic[H]):
    """Search over sets of changes: applying a set to the good side gives the candidate's state.

    All `changes` together are BAD and none of them is GOOD; neither is run. `weights` say how likely each is the
    one, in any unit. `closed` completes a set by what it can't stand without, and `roughly` tells at little cost what
    one change is completed by; both may learn between two calls, when `refresh` is due. `serving` are changes that make
    no difference but for others that need them, such as imports: they are not tried alone while others are suspected.
    Every question that is asked is one that was not told, and each answer leaves fewer suspects or a
    smaller set, so the search ends whatever it is told.

    Raises ValueError without changes, or if one occurs twice.
    """

    def __init__(
        self,
        changes: Sequence[H],
        *,
        weights: Mapping[H, float] | None = None,
        closed: Callable[[frozenset[H]], frozenset[H]] = lambda changes: changes,
        roughly: Callable[[H], frozenset[H]] = lambda change: frozenset({change}),
        serving: Collection[H] = (),
    ) -> None:
        self._all = frozenset(changes)
        if not self._all or len(self._all) != len(changes):
            raise ValueError("narrowing needs at least one change, and each only once")
        told = weights or {}
        self._weight = {change: max(told.get(change, 1.0), 1e-9) for change in changes}
        self._order = self._by_weight()
        self._closed = closed
        self._roughly = roughly
        self._serving = frozenset(serving)
        self._told: dict[frozenset[H], Verdict] = {}
        self._next: frozenset[H] | None = None
        self._is_planned = False
        self._foreseen: tuple[frozenset[H], ...] | None = None

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """Up to n sets: the one that promises most, then those that follow should the ones before be GOOD."""
        found: list[frozenset[H]] = []
        told = dict(self._told)
        while len(found) < n and (candidate := self._planned() if not found else self._plan(told)) is not None:
            found.append(candidate)
            told[candidate] = Verdict.GOOD
        return tuple(found)

    def foresee(self, n: int) -> tuple[frozenset[H], ...]:
        """The set that comes after the first one of `ask` should that be GOOD, if n is not 0: what mostly happens."""
        if self._foreseen is None:
            self._foreseen = self.ask(2)[1:]
        return self._foreseen[: max(n, 0)]

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for unknown changes and for a second and different verdict."""
        if not candidate <= self._all:
            raise ValueError(f"unknown changes: {sorted(map(repr, candidate - self._all))}")
        if candidate and candidate != self._all:
            record(self._told, candidate, verdict)
        self.refresh()

    def refresh(self) -> None:
        """Plan again: `closed` has learned something."""
        self._is_planned = False
        self._foreseen = None

    def doubt(self, change: H) -> None:
        """Take a change for less likely than before: a set that had it could not be judged, and it is to blame."""
        self._weight[change] *= _DOUBT
        self._order = self._by_weight()
        self.refresh()

    def _by_weight(self) -> tuple[H, ...]:
        return tuple(sorted(self._weight, key=lambda change: -self._weight[change]))

    @property
    def done(self) -> bool:
        """Whether nothing smaller can be asked for."""
        return self._planned() is None

    def remaining(self) -> int:
        """Most runs left, about: the suspects halved again and again, then each of what is left taken away."""
        if self.done:
            return 0
        held = self._held(self._told)
        return math.ceil(math.log2(len(held) + 1)) * 2 + _FEW

    @property
    def result(self) -> DeltaResult[H]:
        """The smallest set so far that was BAD, and what is shown of it."""
        held = self._held(self._told)
        left = {change: self._told.get(rest) for change, rest in self._lesser(held)} if self.done else {}
        return DeltaResult(
            minimal=held,
            is_minimal=self.done,
            unproven=frozenset(change for change, verdict in left.items() if verdict is Verdict.SKIP),
            unresolved=sum(verdict is Verdict.SKIP for verdict in self._told.values()),
            runs=len(self._told),
        )

    def _planned(self) -> frozenset[H] | None:
        if not self._is_planned:
            self._next, self._is_planned = self._plan(self._told), True
        return self._next

    def _plan(self, told: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        held = self._held(told)
        candidate = self._likely(held, told)
        if candidate is None and len(held) > _FEW:
            candidate = self._bisected(held, told)
        if candidate is None:
            lesser = (rest for _, rest in self._lesser(held) if rest and rest not in told)
            candidate = next((rest for rest in lesser if not self._tells_nothing(rest, held, told)), None)
        return candidate

    def _held(self, told: Mapping[frozenset[H], Verdict]) -> frozenset[H]:
        held = self._all
        for candidate, verdict in told.items():
            if verdict is Verdict.BAD and len(candidate) < len(held):
                held = candidate
        return held

    def _tells_nothing(self, candidate: frozenset[H], held: frozenset[H], told: Mapping[frozenset[H], Verdict]) -> bool:
        """Whether a set only serves, and something else that is left was in no GOOD set."""
        cleared = _cleared(told)
        return candidate <= self._serving and not held <= self._serving | cleared

    def _likely(self, held: frozenset[H], told: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        """The first of the suspects, as many as tell most: suspects are those that no GOOD set had."""
        cleared = _cleared(told)
        suspects = [change for change in self._order if change in held and change not in cleared]
        rate = _skip_rate(told)
        while suspects:
            left = {change: self._weight[change] for change in suspects}
            group = self._most_telling(suspects, rate)
            found: dict[frozenset[H], float] = {}
            while group:
                # What the group needs in truth may be more than it seemed to need.
                candidate = self._closed(frozenset(group))
                if (
                    len(candidate) < len(held)
                    and candidate not in told
                    and not self._tells_nothing(candidate, held, told)
                ):
                    found[candidate] = _gain(candidate, left, rate)
                group = group[: len(group) // 2]
            if found:
                return max(found, key=lambda candidate: found[candidate])
            # Alone it can't be tried, or is all that is left.
            suspects = suspects[1:]
        return None

    def _most_telling(self, suspects: Sequence[H], rate: float) -> list[H]:
        """The likeliest suspect, and each further one that makes a run tell more: likely, and needing little else.

        What a suspect needs is tried with it, so that its weight counts, too.
        """
        left = {change: self._weight[change] for change in suspects}
        total = sum(left.values())
        group: list[H] = []
        along: frozenset[H] = frozenset()
        most, weight = -1.0, 0.0
        for change in suspects[:_LOOKED_AT]:
            if change in along:
                group.append(change)
                continue
            more = self._roughly(change) - along
            heavier = weight + sum(left.get(other, 0.0) for other in more)
            gain = _entropy(min(heavier / total, 1.0)) * (1 - rate) ** (len(along) + len(more))
            if gain > most + 1e-12:
                group.append(change)
                along, most, weight = along | more, gain, heavier
        return group

    def _bisected(self, held: frozenset[H], told: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        """The next set in a bisection for the changes of `held` that only together are enough."""
        order = [change for change in self._order if change in held]
        base: frozenset[H] = frozenset()
        while order:
            if base:
                alone = self._closed(base)
                if len(alone) >= len(held) or told.get(alone) is Verdict.BAD:
                    return None
                if alone not in told:
                    return alone
            low, high = 0, len(order)
            while high - low > 1:
                middle, candidate, verdict = self._middle(base, order, (low, high), held, told)
                if verdict is None:
                    return candidate
                low, high = (low, middle) if verdict is Verdict.BAD else (middle, high)
            base |= {order[high - 1]}
            order = order[: high - 1]
        return None

    def _middle(
        self,
        base: frozenset[H],
        order: Sequence[H],
        ends: tuple[int, int],
        held: frozenset[H],
        told: Mapping[frozenset[H], Verdict],
    ) -> tuple[int, frozenset[H], Verdict | None]:
        """A place between two ends with its set and verdict, None if it must be requested; avoids places near skips."""
        low, high = ends
        middle = (low + high) // 2
        nearest = sorted(range(low + 1, high), key=lambda place: (abs(place - middle), place))
        for place in nearest[: _SIDESTEPS + 1]:
            candidate = self._closed(base.union(order[:place]))
            verdict = Verdict.BAD if len(candidate) >= len(held) else told.get(candidate)
            if verdict is not Verdict.SKIP:
                return place, candidate, verdict
        return middle, frozenset(), Verdict.SKIP

    def _lesser(self, held: frozenset[H]) -> Iterator[tuple[H, frozenset[H]]]:
        """Each change of a set and the most that can stand without it, as far as no other of these sets has more."""
        needs = {change: self._closed(frozenset({change})) for change in held} if len(held) > 1 else {}
        found: dict[H, frozenset[H]] = {}
        for change in self._order:
            if change in needs:
                rest = frozenset(other for other in needs if change not in needs[other])
                closed = self._closed(rest) if rest else rest
                if change not in closed and len(closed) < len(held):
                    found[change] = closed
        for change, closed in found.items():
            if not any(closed < other for other in found.values()):
                yield change, closed


def _skip_rate(told: Mapping[frozenset[H], Verdict]) -> float:
    """The chance that one more change makes a set a skip, from all that was told."""
    skips = sum(verdict is Verdict.SKIP for verdict in told.values())
    size = sum(len(candidate) for candidate, verdict in told.items() if verdict is not Verdict.SKIP)
    return min((_EXPECTED_SKIPS + skips) / (_EXPECTED_SIZE + size + skips), 0.9)


def _cleared(told: Mapping[frozenset[H], Verdict]) -> frozenset[H]:
    """What was in a GOOD set: alone it is not enough."""
    return frozenset().union(*(candidate for candidate, verdict in told.items() if verdict is Verdict.GOOD))


def _gain(candidate: frozenset[H], weight: Mapping[H, float], rate: float) -> float:
    """Bits that a set is expected to tell, if each of its changes makes it a skip with the chance `rate`."""
    inside = sum(weight.get(change, 0.0) for change in candidate)
    return _entropy(min(inside / sum(weight.values()), 1.0)) * (1 - rate) ** len(candidate)


def _entropy(chance: float) -> float:
    """Bits that a question tells whose answer is yes with this chance."""
    if not 0 < chance < 1:
        return 0.0
    return -chance * math.log2(chance) - (1 - chance) * math.log2(1 - chance)
