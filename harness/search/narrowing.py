"""Narrowing: a minimal set of changes that is still BAD, searched by likelihood and requirements.

It is a variant of delta debugging that learns from each run. Like ProbDD (Wang et al., "Probabilistic Delta Debugging",
ESEC/FSE 2021) it tries the set with the most expected information; like CDD (Zhang et al., arXiv 2408.04735) it needs
only counters for that; like arXiv 2506.11614 it does not assume monotonicity, that a superset of a BAD set is BAD.

It first assumes that one change is enough, and each run halves the weight of the suspects. If no single change is
enough, it bisects them in the order of likelihood, as in QuickXplain (Junker, AAAI 2004).

`AloneFirst` tries each part alone before, the likeliest first, and sets of changes only if none of them is enough. A
run of a part is cheap, and its verdict is about that part only: a part that can't be judged spoils no other one. If a
part with many changes is enough, such as a folder, the parts in it follow, those first whose verdict tells most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.protocol import entropy, record

H = TypeVar("H", bound=Hashable)

_FEW = 3  # at most this many changes are left out one by one; larger sets are bisected first
_LOOKED_AT = 400  # suspects considered for one set
_SIDESTEPS = 4  # neighbours of a skipped middle that are tried
_EXPECTED_SKIPS = 1.0  # prior of the skip rate: this many skips ...
_EXPECTED_SIZE = 30.0  # ... in sets of this many changes in total
_JOINED = 8  # parts that ran are tried together when there are this many, twice as many, and so on
_SMALL = 50  # changes in such a part


@frozen
class DeltaResult(Generic[H]):
    """The result so far: `minimal` is the smallest BAD set that the search has reached.

    `is_minimal`: each of its changes was left out once, with those that require it, and none of these runs was BAD
    (1-minimal). `unproven` are the changes for which that run was skipped. `runs` counts all verdicts, `unresolved` the
    skips among them.
    """

    minimal: frozenset[H]
    is_minimal: bool
    unproven: frozenset[H]
    unresolved: int
    runs: int


class Narrowing(Generic[H]):
    """Search over sets of changes; a candidate is the good side with these changes applied.

    All `changes` together must be BAD, and the empty set GOOD; neither is run. `weights` say how likely each is the
    cause, in any unit. `closed` returns a set with everything that it needs; call `refresh` if it learns more.
    `serving` are changes that matter only to others that need them, such as imports: they are not tried alone while
    others are suspected.

    A set with a verdict is never requested again, and each verdict leaves fewer suspects or a smaller set, so the
    search always ends.

    Raises ValueError if there are no changes, or if one occurs twice.
    """

    def __init__(
        self,
        changes: Sequence[H],
        *,
        weights: Mapping[H, float] | None = None,
        closed: Callable[[frozenset[H]], frozenset[H]] = lambda changes: changes,
        serving: Collection[H] = (),
    ) -> None:
        self._all = frozenset(changes)
        if not self._all or len(self._all) != len(changes):
            raise ValueError("narrowing needs at least one change, and each only once")
        told = weights or {}
        self._weight = {change: max(told.get(change, 1.0), 1e-9) for change in changes}
        self._order = tuple(sorted(self._weight, key=lambda change: -self._weight[change]))
        self._closed = closed
        self._serving = frozenset(serving)
        self._left_out: frozenset[H] = frozenset()
        self._told: dict[frozenset[H], Verdict] = {}
        self._next: frozenset[H] | None = None
        self._is_planned = False
        self._foreseen: tuple[frozenset[H], ...] | None = None

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """Up to n sets: the most informative one, then those that follow if the previous ones are GOOD."""
        found: list[frozenset[H]] = []
        told = dict(self._told)
        while len(found) < n and (candidate := self._planned() if not found else self._plan(told)) is not None:
            found.append(candidate)
            told[candidate] = Verdict.GOOD
        return tuple(found)

    def foresee(self, n: int) -> tuple[frozenset[H], ...]:
        """Up to n sets, at most one: the set that follows if the first one of `ask` is GOOD, the usual case."""
        if self._foreseen is None:
            self._foreseen = self.ask(2)[1:]
        return self._foreseen[: max(n, 0)]

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for unknown changes and for a second, different verdict."""
        if not candidate <= self._all:
            raise ValueError(f"unknown changes: {sorted(map(repr, candidate - self._all))}")
        if candidate and candidate != self._all:
            record(self._told, candidate, verdict)
        self.refresh()

    def refresh(self) -> None:
        """Plan again, because `closed` has learned something."""
        self._is_planned = False
        self._foreseen = None

    def leave_out(self, changes: frozenset[H]) -> None:
        """Try no more sets because of these changes: no set with them could be judged."""
        if changes != self._left_out:
            self._left_out = changes
            self.refresh()

    @property
    def done(self) -> bool:
        """Whether no smaller set is left to try."""
        return self._planned() is None

    def remaining(self) -> int:
        """Rough upper estimate of the runs left: halving the suspects, then leaving out each remaining change."""
        if self.done:
            return 0
        held = self._held(self._told)
        return math.ceil(math.log2(len(held) + 1)) * 2 + _FEW

    @property
    def result(self) -> DeltaResult[H]:
        """The smallest BAD set so far, and what the runs prove about it."""
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
        """Whether a set has only `serving` changes while another kind of change is still suspected."""
        cleared = _cleared(told)
        return candidate <= self._serving and not held <= self._serving | cleared

    def _likely(self, held: frozenset[H], told: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        """The most informative set of the likeliest suspects (changes in no GOOD set), None if there is none."""
        cleared = _cleared(told)
        useless = cleared | self._left_out
        suspects = [change for change in self._order if change in held and change not in useless]
        rate = _skip_rate(told)
        while suspects:
            left = {change: self._weight[change] for change in suspects}
            best, most = None, -1.0
            group = self._most_telling(suspects, rate)
            while group:
                candidate = self._closed(frozenset(group))  # it may need many more changes
                group = group[: len(group) // 2]
                if (
                    len(candidate) < len(held)
                    and candidate not in told
                    and not self._tells_nothing(candidate, held, told)
                    and (gain := _gain(candidate, left, rate)) > most
                ):
                    best, most = candidate, gain
            if best is not None:
                return best
            # The first suspect can't be tried alone, or is all that is left.
            suspects = suspects[1:]
        return None

    def _most_telling(self, suspects: Sequence[H], rate: float) -> list[H]:
        """The likeliest suspects: as many as make a run the most informative."""
        total = sum(self._weight[change] for change in suspects)
        most, weight = -1.0, 0.0
        for count, change in enumerate(suspects[:_LOOKED_AT]):
            weight += self._weight[change]
            gain = entropy(min(weight / total, 1.0)) * (1 - rate) ** (count + 1)
            if gain <= most + 1e-12:
                return list(suspects[:count])
            most = gain
        return list(suspects[:_LOOKED_AT])

    def _bisected(self, held: frozenset[H], told: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        """The next set of a bisection for the changes in `held` that are only enough together, None if it ended."""
        order = [change for change in self._order if change in held and change not in self._left_out]
        base: frozenset[H] = frozenset()
        if not held.isdisjoint(self._left_out):
            rest = self._closed(frozenset(order))
            if len(rest) < len(held) and rest and rest not in told:
                return rest
            if len(rest) >= len(held) or told.get(rest) is not Verdict.BAD:
                base = held & self._left_out  # what could not be judged alone is part of it
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
        """A place near the middle of two ends, no skip if possible, with its set and verdict (None: not run)."""
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
        """Each change of a set, with the largest set that works without it; only sets that no other one contains."""
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
    """The probability that one more change makes a set a skip, from all recorded verdicts."""
    skips = sum(verdict is Verdict.SKIP for verdict in told.values())
    size = sum(len(candidate) for candidate, verdict in told.items() if verdict is not Verdict.SKIP)
    return min((_EXPECTED_SKIPS + skips) / (_EXPECTED_SIZE + size + skips), 0.9)


def _cleared(told: Mapping[frozenset[H], Verdict]) -> frozenset[H]:
    """The changes that were in a GOOD set: none of them is enough alone."""
    return frozenset().union(*(candidate for candidate, verdict in told.items() if verdict is Verdict.GOOD))


def _gain(candidate: frozenset[H], weight: Mapping[H, float], rate: float) -> float:
    """The expected information of a set in bits, if each of its changes makes it a skip with probability `rate`."""
    inside = sum(weight.get(change, 0.0) for change in candidate)
    return entropy(min(inside / sum(weight.values()), 1.0)) * (1 - rate) ** len(candidate)


class AloneFirst(Generic[H]):
    """Search over sets of changes: `parts` in order, each completed by `complete`, then the sets of `sets`.

    A part is left out if all its changes were in a set that was GOOD. One that was skipped is tried again if `complete`
    has learned what it lacks. Within a part that was BAD, the parts are chosen by `weights`. A change that could not be
    judged alone is left out of sets, unless changes are only enough `together`: then a skip says nothing about one.

    Two likely parts may only be enough together, and there may be thousands of unlikely ones. So the first 8 parts that
    were GOOD are tried together, then the first 16, 32 and so on.
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
        found: dict[frozenset[H], None] = dict.fromkeys(self._joined())
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

    def _joined(self) -> Iterator[frozenset[H]]:
        """The next union of parts that were GOOD alone, if one is due."""
        if self._held is not None or self._together:
            return
        parts = set(self._tried.values())
        ran = [one for one, seen in self._told.items() if seen is Verdict.GOOD and one in parts and len(one) <= _SMALL]
        count = _JOINED
        while count <= len(ran):
            union = frozenset[H]().union(*ran[:count])
            if union not in self._told:
                yield union
                return
            count *= 2

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
