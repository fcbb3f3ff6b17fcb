"""Narrowing: a minimal set of changes that is still BAD, searched by likelihood.

Parts are tried alone first, the likeliest first. A run of a part is cheap, and its verdict is about that part only: a
part that can't be judged spoils no other one. If a part with many changes is enough, such as a folder, the parts in it
follow, those first whose verdict tells most.

If no part is enough, or there are none, sets follow. The search finds one necessary change after another by galloping
and then halving over prefixes of the changes, sorted by likelihood. This is based on QuickXplain (Junker, "QUICKXPLAIN:
Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI 2004) with the galloping search of Bentley
and Yao ("An almost optimal algorithm for unbounded searching", 1976). A cause at rank r costs about 2 log2(r) runs, and
several that mask each other are found in one search, where delta debugging takes twice as many runs.

At the end each change of the result is left out once, because a superset of a BAD set need not be BAD.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import evolve, frozen

from harness.model.verdict import Verdict
from harness.search.protocol import entropy, foresee, record

H = TypeVar("H", bound=Hashable)

_JOINED = 8  # parts that ran are tried together when there are this many, twice as many, and so on
_SMALL = 50  # changes in such a part


@frozen
class NarrowingResult(Generic[H]):
    """The result so far: `minimal` is the smallest BAD set that the search has reached, all changes if there is none.

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
    cause, in any unit; without them, the likeliest come first. `closed` returns a set with everything that it needs,
    and `complete` does so for a part; call `refresh` if they learn more. What they add may be outside `changes`: it
    comes along in candidates and in the result, but it is not searched, and sets are compared without it. If not
    `leaves_out`, the search ends without leaving out each change of the result.

    `parts` are tried alone, in order. A part is left out if all its changes were in a set that was GOOD. One that was
    skipped is tried again if `complete` has learned what it lacks. Within a part that was BAD, the parts are chosen by
    `weights`. A change that could not be judged alone comes last in sets, unless changes are only enough `together`:
    then a skip says nothing about one.

    Two likely parts may only be enough together, and there may be thousands of unlikely ones. So the first 8 parts that
    were GOOD are tried together, then the first 16, 32 and so on.

    A set that can't be judged counts as not enough, so it is made larger. A set with a verdict is never requested
    again, so the search always ends.

    Raises ValueError if there are no changes, or if one occurs twice.
    """

    def __init__(
        self,
        changes: Sequence[H],
        *,
        weights: Mapping[H, float] | None = None,
        closed: Callable[[frozenset[H]], frozenset[H]] = lambda changes: changes,
        parts: Iterable[frozenset[H]] = (),
        complete: Callable[[frozenset[H]], frozenset[H]] = lambda part: part,
        together: bool = False,
        leaves_out: bool = True,
    ) -> None:
        self._all = frozenset(changes)
        if not self._all or len(self._all) != len(changes):
            raise ValueError("narrowing needs at least one change, and each only once")
        self._weight = {change: max((weights or {}).get(change, 1.0), 1e-9) for change in changes}
        self._order = sorted(self._weight, key=lambda change: -self._weight[change])
        self._closed = closed
        self._parts = list(parts)
        self._complete = complete
        self._together = together
        self._leaves_out = leaves_out
        self._verdicts: dict[frozenset[H], Verdict] = {}
        self._cleared: set[H] = set()
        self._tried: dict[frozenset[H], frozenset[H]] = {}
        self._waiting: tuple[frozenset[H], ...] = ()
        self._planned: dict[int, tuple[frozenset[H], ...]] = {}
        self._start = self._all  # in which the search over prefixes began
        self._prefixes: set[frozenset[H]] = set()

    @property
    def are_parts_left(self) -> bool:
        """Whether parts are still tried alone."""
        return bool(self._next_parts(1))

    def ask(self, n: int = 1) -> tuple[frozenset[H], ...]:
        """Up to n parts; when none is left, the set to try next, then up to n - 1 sets that may follow it."""
        return self._next_parts(n) or self._next_sets(n)

    def foresee(self, n: int) -> tuple[frozenset[H], ...]:
        """Up to n candidates that may follow the first one."""
        return self._next_parts(1 + n)[1:] if self.are_parts_left else self._next_sets(1 + n)[1:]

    def tell(self, candidate: frozenset[H], verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for a set of unknown changes, and for a second, different verdict."""
        if candidate and candidate.isdisjoint(self._all):
            raise ValueError(f"unknown changes: {sorted(map(repr, candidate))}")
        if candidate and not candidate >= self._all:
            record(self._verdicts, candidate, verdict)
        if verdict is Verdict.GOOD:
            self._cleared |= candidate
        is_smaller = self._size(candidate) < self._size(self._start)
        if verdict is Verdict.BAD and candidate not in self._prefixes and is_smaller:
            self._start = candidate
        self.refresh()

    def refresh(self) -> None:
        """Plan again, because `closed` or `complete` has learned something."""
        self._waiting, self._planned = (), {}

    @property
    def done(self) -> bool:
        """Whether no part and no smaller set is left to try."""
        return not self.ask(1)

    def remaining(self) -> int:
        """Upper estimate of the runs left, if only one more change is needed."""
        if self.are_parts_left:
            return len(self._parts)
        return 0 if self.done else 2 * len(self._smallest_bad(self._verdicts)).bit_length()

    @property
    def result(self) -> NarrowingResult[H]:
        """The smallest BAD set so far, and what the runs prove about it."""
        reached, done = self.reached, self.done
        left = {change: self._verdicts.get(rest) for change, rest in self._lesser(reached.minimal)} if done else {}
        unproven = frozenset(change for change, verdict in left.items() if verdict is Verdict.SKIP)
        return evolve(reached, is_minimal=self._leaves_out and done, unproven=unproven)

    @property
    def reached(self) -> NarrowingResult[H]:
        """The result of a search that is stopped here; unlike `result`, it does not plan what would follow."""
        return NarrowingResult(
            minimal=self._smallest_bad(self._verdicts),
            is_minimal=False,
            unproven=frozenset(),
            unresolved=sum(verdict is Verdict.SKIP for verdict in self._verdicts.values()),
            runs=len(self._verdicts),
        )

    def _smallest_bad(self, verdicts: Mapping[frozenset[H], Verdict]) -> frozenset[H]:
        """The smallest BAD set."""
        bad = (candidate for candidate, verdict in verdicts.items() if verdict is Verdict.BAD)
        return min(bad, key=lambda candidate: (self._size(candidate), len(candidate)), default=self._all)

    def _size(self, candidate: frozenset[H]) -> int:
        """The number of changes that are searched in a set."""
        return len(candidate & self._all)

    # -- parts

    def _next_parts(self, n: int) -> tuple[frozenset[H], ...]:
        if self._parts and len(self._waiting) < n:
            self._waiting = self._parts_to_try(n)
        return self._waiting[:n]

    def _parts_to_try(self, n: int) -> tuple[frozenset[H], ...]:
        """The next parts; those that are not worth a run are dropped."""
        smallest = self._smallest_bad(self._verdicts)
        candidates: dict[frozenset[H], None] = {}
        if smallest != self._all:
            self._parts = self._most_informative(smallest)
        elif not self._together:
            candidates = dict.fromkeys(self._joined())
        position = 0
        while position < len(self._parts) and len(candidates) < n:
            candidate = self._candidate(self._parts[position], smallest)
            if candidate is None:
                del self._parts[position]
                continue
            candidates[candidate] = None
            position += 1
        return tuple(candidates)

    def _joined(self) -> Iterator[frozenset[H]]:
        """The next union of parts that were GOOD alone, if one is due."""
        parts = set(self._tried.values())
        ran = [
            candidate
            for candidate, verdict in self._verdicts.items()
            if verdict is Verdict.GOOD and candidate in parts and len(candidate) <= _SMALL
        ]
        count = _JOINED
        while count <= len(ran):
            union = frozenset[H]().union(*ran[:count])
            if union not in self._verdicts:
                yield union
                return
            count *= 2

    def _candidate(self, part: frozenset[H], smallest: frozenset[H]) -> frozenset[H] | None:
        """The set to try for a part, None if it is not worth a run."""
        if part <= self._cleared:
            return None
        candidate = self._tried[part] = self._complete(part)
        return None if candidate in self._verdicts or self._size(candidate) >= self._size(smallest) else candidate

    def _most_informative(self, smallest: frozenset[H]) -> list[frozenset[H]]:
        """The parts inside a set that is enough, those first whose verdict tells most about the rest."""
        left = {change: self._weight[change] for change in (smallest & self._all) - self._cleared}
        total = sum(left.values()) or 1.0
        bits = {
            part: entropy(sum(left.get(change, 0.0) for change in part) / total)
            for part in self._parts
            if part < smallest
        }
        return sorted(bits, key=lambda part: -bits[part])

    # -- sets

    def _next_sets(self, n: int) -> tuple[frozenset[H], ...]:
        if n not in self._planned:
            first = self._plan({})
            following = foresee(n - 1, plan=self._plan, requested=first) if first and n > 1 else ()
            self._planned[n] = (*first, *following)
        return self._planned[n]

    def _plan(self, supposed: Mapping[frozenset[H], Verdict]) -> tuple[frozenset[H], ...]:
        """The set to try next if these verdicts are added to the known ones, none if the search is done then."""
        verdicts = {**self._verdicts, **supposed}
        wanted = self._galloped(verdicts)
        if wanted is not None:
            self._prefixes.add(wanted)
        elif self._leaves_out:
            lesser = self._lesser(self._smallest_bad(verdicts))
            wanted = next((rest for _, rest in lesser if rest and rest not in verdicts), None)
        return () if wanted is None else (wanted,)

    def _galloped(self, verdicts: Mapping[frozenset[H], Verdict]) -> frozenset[H] | None:
        """The next set of the search for the necessary changes in `_start`, None if it ended."""

        cleared = [candidate for candidate, verdict in verdicts.items() if verdict is Verdict.GOOD]

        def verdict_of(candidate: frozenset[H]) -> Verdict | None:
            """The verdict of a set, None if it has to be run: what is part of a GOOD set is not enough."""
            if self._size(candidate) >= self._size(self._start):
                return Verdict.BAD
            if candidate in verdicts:
                return verdicts[candidate]
            return Verdict.GOOD if any(candidate < other for other in cleared) else None

        late = self._never_judged()
        order = [change for change in self._order if change in self._start and change not in late]
        judged = self._closed(frozenset(order))
        if judged and verdict_of(judged) is None:
            return judged
        if verdict_of(judged) is not Verdict.BAD:
            order += [change for change in self._order if change in self._start and change in late]
        needed: frozenset[H] = frozenset()
        while order:
            if needed:
                alone = self._closed(needed)
                verdict = verdict_of(alone)
                if verdict is None:
                    return alone
                if verdict is Verdict.BAD:
                    break
            below, enough = 0, len(order)
            while enough - below > 1:
                # Gallop from the likeliest change, then halve the interval.
                is_galloping = not self._tried and enough == len(order) and 2 * max(below, 1) < enough
                length = max(2 * below, 1) if is_galloping else (below + enough) // 2
                candidate = self._closed(needed.union(order[:length]))
                verdict = verdict_of(candidate)
                if verdict is None:
                    return candidate
                below, enough = (below, length) if verdict is Verdict.BAD else (length, enough)
            needed |= {order[enough - 1]}
            order = order[: enough - 1]
        return None

    def _never_judged(self) -> frozenset[H]:
        """The changes that could not be judged alone, and were in no set that could; none if they need each other."""
        alone = {part: candidate for part, candidate in self._tried.items() if len(part) == 1}
        skipped = [
            part for part, candidate in alone.items() if self._verdicts.get(candidate, Verdict.SKIP) is Verdict.SKIP
        ]
        return frozenset() if self._together else frozenset[H]().union(*skipped) - self._cleared

    def _lesser(self, smallest: frozenset[H]) -> Iterator[tuple[H, frozenset[H]]]:
        """Each change of a set, with the largest set that works without it; only sets that no other one contains."""
        searched = smallest & self._all
        needs = {change: self._closed(frozenset({change})) for change in searched} if len(searched) > 1 else {}
        without: dict[H, frozenset[H]] = {}
        for change in self._order:
            if change in needs:
                rest = frozenset(other for other in needs if change not in needs[other])
                closed = self._closed(rest) if rest else rest
                if change not in closed and self._size(closed) < len(searched):
                    without[change] = closed
        for change, closed in without.items():
            if not any(closed < other for other in without.values()):
                yield change, closed


def fewest(items: Sequence[H], is_enough: Callable[[Collection[H]], bool]) -> tuple[H, ...] | None:
    """Return few items that are enough, the first ones if possible; None if all are too few."""
    if not is_enough(items):
        return None
    if not items or is_enough(()):
        return ()
    search = Narrowing(items, leaves_out=False)
    while candidates := search.ask():
        search.tell(candidates[0], Verdict.BAD if is_enough(candidates[0]) else Verdict.GOOD)
    return tuple(item for item in items if item in search.result.minimal)
