"""A noisy search: the boundary between two failure rates, where one run does not tell good from bad.

It keeps a posterior over the boundaries and takes the run that tells most of it for each second (Lindley 1956; for
searches with noise Waeber, Frazier and Henderson, "Bisection search with noisy responses", SIAM J. Control Optim.
51(3), 2013). It ends when one boundary, or that there is none, is as sure as asked for, or when its runs are spent.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.bisection_result import BisectionResult, BisectionStatus, Trial
from harness.search.posterior import Counts, Posterior, informs
from harness.search.protocol import record
from harness.search.states import PositionState, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CONFIDENCE = 0.99
MOST = 160  # runs, after which it says what it knows; more than any change from 0 to 0.2 takes over 100 releases
_PASSES = 12  # runs of the bad end without a failure, after which there is none: 0.3 would have failed once in 99 %
_BRANCHES = 8


def _one_second(position: int) -> float:  # noqa: ARG001 - where nothing is known of them, all take as long
    return 1.0


@frozen
class _Knowledge:
    """Runs by position; the positions skipped more often than judged, where another run is a waste; the posterior."""

    counts: Mapping[int, Counts]
    untestable: frozenset[int]
    posterior: Posterior


class NoisySearch:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad` and `find_fix` are those of `Bisection`. `confidence`: when it ends. `most`: runs after which it ends
    whatever is known. `seconds`: what a run at a position takes, of which only the ratios matter.
    """

    def __init__(
        self,
        count: int,
        *,
        good: int | None = None,
        bad: int | None = None,
        find_fix: bool = False,
        confidence: float = CONFIDENCE,
        most: int = MOST,
        seconds: Callable[[int], float] = _one_second,
    ) -> None:
        self._count = count
        self._find_fix = find_fix
        self._bad = bad if bad is not None else 0 if find_fix else count - 1
        self._good = good if good is not None else count - 1 if find_fix else 0
        self._confidence = confidence
        self._most = most
        self._seconds = seconds
        self._told: dict[Trial, Verdict] = {}
        self._asked: tuple[Trial, ...] = ()
        self._length = abs(self._bad - self._good) + 1
        self._known: _Knowledge | None = None

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict of one run."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        record(self._told, candidate, verdict)
        self._known = None

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials worth running now; what was asked before comes first, since every run tells something."""
        if self.done or n <= 0:
            return ()
        running = [trial for trial in self._asked if trial not in self._told][:n]
        wanted = running + self._new(running, n - len(running))
        self._asked = tuple(dict.fromkeys((*(t for t in self._asked if t not in self._told), *wanted)))
        return tuple(wanted)

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n positions that were never run and may be asked next."""
        if self.done:
            return ()
        bits = self._worth(self._posterior)
        seen = {trial.position for trial in (*self._told, *self._asked)}
        likely = sorted(range(self._length), key=lambda i: -bits[i])
        fresh = [self._at(i) for i in likely if bits[i] > 0 and self._at(i) not in seen]
        return tuple(Trial(position) for position in fresh[:n])

    @property
    def done(self) -> bool:
        """Whether it is sure, or its runs are spent."""
        return self.result.status is not BisectionStatus.OPEN

    def remaining(self) -> int:
        """Estimate of the runs left, from what the best one tells; no more than may be run."""
        if self.done:
            return 0
        cuts = self._posterior.cuts
        left = -sum(w * math.log2(w) for w in cuts if w > 0) + math.log2(1 / (1 - self._confidence))
        bits = max(self._worth(self._posterior), default=0.0)
        return max(1, min(self._most - self._runs, math.ceil(left / bits) if bits > 0 else self._most))

    @property
    def result(self) -> BisectionResult:
        """What is known so far."""
        groups = self._groups()
        mass = [sum(self._posterior.cuts[c] for c in group) for group in groups]
        best = max(range(len(groups)), key=lambda g: mass[g], default=None)
        skipped = tuple(sorted(self._at(i) for i in self._untestable))
        flaky = tuple(sorted(self._at(i) for i, c in self._counts.items() if 0 < c.bad < c.runs))
        status = self._ended(groups, mass, best)
        if best is None or status in (
            BisectionStatus.NO_FAILURE,
            BisectionStatus.NOT_A_REGRESSION,
            BisectionStatus.NOT_FIXED,
        ):
            total = Counts(sum(c.bad for c in self._counts.values()), self._runs)
            return BisectionResult(
                status, skipped=skipped, flaky=flaky, confidence=self._posterior.none, bad_side=total
            )
        group = groups[best]
        low, high = group[0] - 1, group[-1]
        sides = self._sides(group[-1])
        sure = status is not BisectionStatus.OPEN and mass[best] >= self._confidence
        suspects = self._newer(group) if sure else self._credible()
        ends = {"good": self._at(low), "bad": self._at(high)} if sure and self._is_run(low, high) else {}
        return BisectionResult(
            status,
            last_good=None if self._find_fix else ends.get("good"),
            first_bad=None if self._find_fix else ends.get("bad"),
            last_bad=ends.get("bad") if self._find_fix else None,
            first_good=ends.get("good") if self._find_fix else None,
            suspects=suspects,
            skipped=skipped,
            flaky=flaky,
            confidence=mass[best],
            good_side=sides[0],
            bad_side=sides[1],
        )

    @property
    def states(self) -> tuple[PositionState, ...]:
        """What is known of every position, for a picture: bad if it ever failed, excluded if far from the change."""
        matter = set(self._credible())
        states = []
        for position in range(self._count):
            verdicts = {v for trial, v in self._told.items() if trial.position == position}
            worst = next((v for v in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP) if v in verdicts), None)
            states.append(state_of(worst, matters=position in matter))
        return tuple(states)

    # On the line of the posterior 0 is the good end, and the bad end is last.

    def _at(self, index: int) -> int:
        return self._good - index if self._find_fix else self._good + index

    def _index(self, position: int) -> int:
        return self._good - position if self._find_fix else position - self._good

    @property
    def _counts(self) -> Mapping[int, Counts]:
        return self._knowledge.counts

    @property
    def _runs(self) -> int:
        return len(self._told)

    @property
    def _untestable(self) -> frozenset[int]:
        return self._knowledge.untestable

    @property
    def _posterior(self) -> Posterior:
        return self._knowledge.posterior

    @property
    def _knowledge(self) -> _Knowledge:
        """All that follows from what was told, computed once for each verdict."""
        if self._known is None:
            counts: dict[int, Counts] = {}
            balance: dict[int, int] = {}
            for trial, verdict in self._told.items():
                index = self._index(trial.position)
                if not 0 <= index < self._length:
                    continue
                skipped = verdict is Verdict.SKIP
                balance[index] = balance.get(index, 0) + (1 if skipped else -1)
                if not skipped:
                    before = counts.get(index, Counts())
                    counts[index] = Counts(before.bad + (verdict is Verdict.BAD), before.runs + 1)
            untestable = frozenset(index for index, value in balance.items() if value > 0)
            self._known = _Knowledge(counts, untestable, Posterior.of(self._length, counts))
        return self._known

    def _groups(self) -> list[range]:
        """Boundaries that no run can tell apart, since all between them was skipped."""
        untestable = self._untestable
        groups: list[range] = []
        start = 1
        for cut in range(1, self._length):
            if cut not in untestable or cut == self._length - 1:
                groups.append(range(start, cut + 1))
                start = cut + 1
        return groups

    def _ended(self, groups: Sequence[range], mass: Sequence[float], best: int | None) -> BisectionStatus:
        counts = self._counts
        failed = sum(c.bad for c in counts.values())
        nothing = BisectionStatus.NOT_FIXED if self._find_fix else BisectionStatus.NOT_A_REGRESSION
        if len(self._untestable) >= self._length:
            return BisectionStatus.INCONCLUSIVE
        if best is None:
            return nothing if failed else BisectionStatus.NO_FAILURE
        if not failed:
            spent = sum(c.runs for c in counts.values()) >= _PASSES or self._runs >= self._most
            return BisectionStatus.NO_FAILURE if spent else BisectionStatus.OPEN
        if self._posterior.none >= self._confidence:
            return nothing
        group = groups[best]
        if mass[best] >= self._confidence:
            if self._is_run(group[0] - 1, group[-1]):
                found = BisectionStatus.FIXED if self._find_fix else BisectionStatus.FOUND
                return found if len(group) == 1 else BisectionStatus.INCONCLUSIVE
            if not self._untestable.isdisjoint((group[0] - 1, group[-1])):
                return BisectionStatus.INCONCLUSIVE
        return BisectionStatus.INCONCLUSIVE if self._runs >= self._most else BisectionStatus.OPEN

    def _is_run(self, low: int, high: int) -> bool:
        counts = self._counts
        return low in counts and high in counts and counts[low].bad < counts[low].runs and counts[high].bad > 0

    def _sides(self, cut: int) -> tuple[Counts, Counts]:
        """The runs before a boundary and from it on."""
        good = [c for i, c in self._counts.items() if i < cut]
        bad = [c for i, c in self._counts.items() if i >= cut]
        return (
            Counts(sum(c.bad for c in good), sum(c.runs for c in good)),
            Counts(sum(c.bad for c in bad), sum(c.runs for c in bad)),
        )

    def _newer(self, cuts: Sequence[int]) -> tuple[int, ...]:
        """The positions that may have brought the change, if it lies at one of these boundaries."""
        return tuple(sorted(self._at(cut - 1 if self._find_fix else cut) for cut in cuts))

    def _credible(self) -> tuple[int, ...]:
        """The fewest boundaries that together are as sure as asked for, given that there is a change."""
        cuts = self._posterior.cuts
        wanted, chosen, total = self._confidence * sum(cuts), [], 0.0
        for cut in sorted(range(1, self._length), key=lambda c: -cuts[c]):
            if total >= wanted:
                break
            chosen.append(cut)
            total += cuts[cut]
        return self._newer(chosen)

    def _worth(
        self, posterior: Posterior, cuts: Sequence[float] | None = None, none: float | None = None
    ) -> list[float]:
        """Bits that a run at each position tells, for each second; nothing where it can't be run.

        That there is a change is looked at once its place would be known: until then every run tells of both. Beside
        what was skipped little is expected, since untestable releases come in runs.
        """
        cuts = posterior.cuts if cuts is None else cuts
        none = posterior.none if none is None else none
        untestable = self._untestable
        if not any(c.bad for c in self._counts.values()):
            first = next((i for i in reversed(range(self._length)) if i not in untestable), None)
            return [float(i == first) for i in range(self._length)]
        there = sum(cuts)
        if there > 0.2 and max(cuts) < self._confidence * there:
            bits = informs([w / there for w in cuts], 0.0, posterior)
        else:
            bits = informs(cuts, none, posterior)
        return [
            0.0
            if i in untestable
            else (value + 1e-9) * _doubt(i, untestable, self._counts) / max(self._seconds(self._at(i)), 1e-3)
            for i, value in enumerate(bits)
        ]

    def _new(self, running: Sequence[Trial], n: int) -> list[Trial]:
        """The n runs that together tell most: each is chosen over how those before it may end."""
        posterior = self._posterior
        branches: list[Branch] = [(1.0, posterior.cuts, posterior.none)]
        for trial in running:
            branches = _split(branches, self._index(trial.position), posterior)
        chosen: list[Trial] = []
        next_attempt = self._attempts((*running,))
        for _ in range(n):
            worth = [0.0] * self._length
            for weight, cuts, none in branches:
                for i, bits in enumerate(self._worth(posterior, cuts, none)):
                    worth[i] += weight * bits
            best = max(range(self._length), key=lambda i: (worth[i], i))
            position = self._at(best)
            attempt = next_attempt.get(position, 0)
            next_attempt[position] = attempt + 1
            chosen.append(Trial(position, attempt))
            branches = _split(branches, best, posterior)
        return chosen

    def _attempts(self, running: Sequence[Trial]) -> dict[int, int]:
        """The next attempt at each position."""
        following: dict[int, int] = {}
        for trial in (*self._told, *self._asked, *running):
            following[trial.position] = max(following.get(trial.position, 0), trial.attempt + 1)
        return following


Branch = tuple[float, "Sequence[float]", float]


def _split(branches: Sequence[Branch], index: int, rates: Posterior) -> list[Branch]:
    """Each branch after a run at an index that ended bad, and after one that ended good; the likeliest few."""
    split: list[Branch] = []
    for weight, cuts, none in branches:
        for bad in (True, False):
            chances = [
                w * (rate if bad else 1 - rate)
                for cut, w in enumerate(cuts)
                for rate in (rates.bad[cut] if index >= cut else rates.good[cut],)
            ]
            same = none * (rates.same if bad else 1 - rates.same)
            total = sum(chances) + same
            if total > 0:
                split.append((weight * total, [c / total for c in chances], same / total))
    return sorted(split, key=lambda branch: -branch[0])[:_BRANCHES]


def _doubt(index: int, untestable: frozenset[int], counts: Mapping[int, Counts]) -> float:
    """The chance that a position can be judged: less beside what was skipped, unless it was judged before."""
    if index in counts or not untestable:
        return 1.0
    distance = min(abs(index - other) for other in untestable)
    return distance / (distance + 2)
