"""A noisy search: finds the boundary between two failure rates if one run can't tell good from bad.

It keeps a posterior over the boundaries and chooses the run with the most information per second (Lindley 1956; for
noisy searches Waeber, Frazier and Henderson, "Bisection search with noisy responses", SIAM J. Control Optim. 51(3),
2013). It ends when one boundary, or the absence of a change, reaches the required confidence, or after its maximum
number of runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from attrs import frozen

from harness.model.boundary import Counts
from harness.model.verdict import Verdict
from harness.search.bisection import BisectionResult, BisectionStatus
from harness.search.protocol import PositionState, Trial, entropy, record, state_of
from harness.search.rates import CONFIDENCE, FLAKY, Posterior, Prior

_MOST = 160  # maximum number of runs; more than any change from 0 to 0.2 among 100 releases takes
PASSES = 12  # passes of the bad end that show that there is no bug: at a rate of 0.3, 99 % would have failed once
_DIGITS = 9  # precision of comparisons: further digits depend on how this Python adds
_NO_CHANGE = (BisectionStatus.NO_FAILURE, BisectionStatus.NOT_A_REGRESSION, BisectionStatus.NOT_FIXED)


class NoisySearch:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad` and `find_fix` are those of `Bisection`. `confidence`: the search ends once it is reached.
    `seconds` returns the duration of a run at a position; only the ratios matter. `prior`: the assumptions about the
    failure rates.
    """

    def __init__(
        self,
        count: int,
        *,
        good: int | None = None,
        bad: int | None = None,
        find_fix: bool = False,
        confidence: float = CONFIDENCE,
        seconds: Callable[[int], float] = lambda _: 1.0,
        prior: Prior = FLAKY,
    ) -> None:
        self._count = count
        self._find_fix = find_fix
        self._bad = bad if bad is not None else 0 if find_fix else count - 1
        self._good = good if good is not None else count - 1 if find_fix else 0
        self._confidence = confidence
        self._seconds = seconds
        self._prior = prior
        self._told: dict[Trial, Verdict] = {}
        self._asked: tuple[Trial, ...] = ()
        self._length = abs(self._bad - self._good) + 1
        self._known: Knowledge | None = None
        self._result: BisectionResult | None = None

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict of one run."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        record(self._told, candidate, verdict)
        self._known = self._result = None

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests come first, because every run is informative."""
        if self.done or n <= 0:
            return ()
        running = [trial for trial in self._asked if trial not in self._told][:n]
        wanted = running + self._new(running, n - len(running))
        self._asked = tuple(dict.fromkeys((*(t for t in self._asked if t not in self._told), *wanted)))
        return tuple(wanted)

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n positions that have not run and may be requested next."""
        if self.done:
            return ()
        bits = self._worths()
        seen = {trial.position for trial in (*self._told, *self._asked)}
        likely = sorted(range(self._length), key=lambda i: -bits[i])
        fresh = [self._at(i) for i in likely if bits[i] > 0 and self._at(i) not in seen]
        return tuple(Trial(position) for position in fresh[:n])

    @property
    def done(self) -> bool:
        """Whether the required confidence or the maximum number of runs is reached."""
        return self.result.status is not BisectionStatus.OPEN

    def remaining(self) -> int:
        """Estimate of the runs left, from the information of the best one; at most those that are allowed."""
        if self.done:
            return 0
        cuts = self._knowledge.posterior.cuts
        left = -sum(w * math.log2(w) for w in cuts if w > 0) + math.log2(1 / (1 - self._confidence))
        bits = max(self._worths(), default=0.0)
        return max(1, min(_MOST - len(self._told), math.ceil(left / bits) if bits > 0 else _MOST))

    @property
    def result(self) -> BisectionResult:
        """What is known so far."""
        if self._result is None:
            self._result = self._concluded()
        return self._result

    def _concluded(self) -> BisectionResult:
        known = self._knowledge
        best = max(known.groups(), key=known.mass, default=None)
        flaky = tuple(sorted(self._at(i) for i in known.flaky))
        status = self._ended(best)
        if best is None or status in _NO_CHANGE:
            return BisectionResult(
                status,
                flaky=flaky,
                confidence=known.posterior.none,
                bad_side=Counts(known.fails, known.runs),
            )
        low, high = best[0] - 1, best[-1]
        good_side, bad_side = known.sides(high)
        sure = status is not BisectionStatus.OPEN and known.mass(best) >= self._confidence
        ends = {"good": self._at(low), "bad": self._at(high)} if sure and known.shows(low, high) else {}
        return BisectionResult(
            status,
            last_good=None if self._find_fix else ends.get("good"),
            first_bad=None if self._find_fix else ends.get("bad"),
            last_bad=ends.get("bad") if self._find_fix else None,
            first_good=ends.get("good") if self._find_fix else None,
            suspects=self._newer(best if sure else known.credible(self._confidence)),
            flaky=flaky,
            confidence=known.mass(best),
            good_side=good_side,
            bad_side=bad_side,
            trusts_ends=self._prior.no_change == 0,
        )

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display: bad if it ever failed, excluded if far from the change."""
        matter = set(self._newer(self._knowledge.credible(self._confidence)))
        states = []
        for position in range(self._count):
            verdicts = {v for trial, v in self._told.items() if trial.position == position}
            worst = next((v for v in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP) if v in verdicts), None)
            states.append(state_of(worst, matters=position in matter))
        return tuple(states)

    # In the posterior, index 0 is the good end and the last index is the bad end.

    def _at(self, index: int) -> int:
        return self._good - index if self._find_fix else self._good + index

    def _index(self, position: int) -> int:
        return self._good - position if self._find_fix else position - self._good

    @property
    def _knowledge(self) -> Knowledge:
        """What follows from the recorded verdicts, computed once after each verdict."""
        if self._known is None:
            told = [(self._index(trial.position), verdict) for trial, verdict in self._told.items()]
            self._known = Knowledge.of(self._length, told, self._prior)
        return self._known

    def _worths(self) -> list[float]:
        """Bits per second of a run at each index, 0 where it can't be run.

        Whether there is a change matters only once its location would be known; until then every run informs about
        both. The expected value is low next to a skip, because untestable releases are often consecutive.
        """
        known = self._knowledge
        cuts, none = known.posterior.cuts, known.posterior.none
        if not known.fails:
            first = next((i for i in reversed(range(known.length)) if i not in known.untestable), None)
            return [float(i == first) for i in range(known.length)]
        there = sum(cuts)
        if there > 0.2 and max(cuts) < self._confidence * there:
            bits = informs([w / there for w in cuts], 0.0, known.posterior)
        else:
            bits = informs(cuts, none, known.posterior)
        seconds = [max(self._seconds(self._at(i)), 1e-3) for i in range(known.length)]
        return [
            0.0 if i in known.untestable else (value + 1e-9) * known.chance_of_a_verdict(i) / seconds[i]
            for i, value in enumerate(bits)
        ]

    def _ended(self, best: range | None) -> BisectionStatus:
        known = self._knowledge
        nothing = BisectionStatus.NOT_FIXED if self._find_fix else BisectionStatus.NOT_A_REGRESSION
        is_spent = len(self._told) >= _MOST
        if len(known.untestable) >= self._length:
            return BisectionStatus.INCONCLUSIVE
        if best is None:
            return nothing if known.fails else BisectionStatus.NO_FAILURE
        if not known.fails:
            return BisectionStatus.NO_FAILURE if known.runs >= PASSES or is_spent else BisectionStatus.OPEN
        if known.posterior.none >= self._confidence:
            return nothing
        if known.mass(best) >= self._confidence:
            sides = (best[0] - 1, best[-1])
            if known.shows(*sides):
                found = BisectionStatus.FIXED if self._find_fix else BisectionStatus.FOUND
                return found if len(best) == 1 else BisectionStatus.INCONCLUSIVE
            unshown = [index for index in sides if index in known.untestable or known.runs_at(index) >= PASSES]
            if any(not known.shows_at(index, is_bad=index == best[-1]) for index in unshown):
                return BisectionStatus.INCONCLUSIVE
        return BisectionStatus.INCONCLUSIVE if is_spent else BisectionStatus.OPEN

    @property
    def _unshown(self) -> list[int]:
        """If a boundary is certain enough to be named: those of its sides that no run has confirmed yet."""
        known = self._knowledge
        best = max(known.groups(), key=known.mass, default=range(0))
        if not known.fails or known.mass(best) < self._confidence:
            return []
        sides = ((best[0] - 1, False), (best[-1], True))
        return [index for index, is_bad in sides if not known.shows_at(index, is_bad=is_bad)]

    def _newer(self, cuts: Sequence[int]) -> tuple[int, ...]:
        """The positions that may have introduced the change, if it is at one of these boundaries."""
        return tuple(sorted(self._at(cut - 1 if self._find_fix else cut) for cut in cuts))

    def _new(self, running: Sequence[Trial], n: int) -> list[Trial]:
        """The next attempts at the n positions that are most informative.

        A further run at a position counts half, a third, and so on: it tells less before the others have ended.
        """
        following: dict[int, int] = {}
        for trial in (*self._told, *self._asked, *running):
            following[trial.position] = max(following.get(trial.position, 0), trial.attempt + 1)
        times = Counter(self._index(trial.position) for trial in running)
        unshown = [index for index in self._unshown if not times[index]]
        worths = self._worths()
        chosen: list[Trial] = []
        for _ in range(n):
            shares = [round(worth / (1 + times[index]), _DIGITS) for index, worth in enumerate(worths)]
            index = unshown.pop(0) if unshown else max(range(self._length), key=lambda i: (shares[i], i))
            times[index] += 1
            position = self._at(index)
            chosen.append(Trial(position, following.get(position, 0)))
            following[position] = chosen[-1].attempt + 1
        return chosen


@frozen
class Knowledge:
    """Judged runs by index, the indexes that were skipped more often than judged, and the posterior.

    Running an `untestable` index again is a waste. A boundary c is between the indexes c - 1 and c.
    """

    length: int
    counts: Mapping[int, Counts]
    untestable: frozenset[int]
    posterior: Posterior

    @classmethod
    def of(cls, length: int, told: Iterable[tuple[int, Verdict]], prior: Prior) -> Knowledge:
        """Compute what follows from verdicts by index; indexes out of range are ignored."""
        tally = {verdict: [0] * length for verdict in Verdict}
        for index, verdict in told:
            if 0 <= index < length:
                tally[verdict][index] += 1
        rows = enumerate(zip(tally[Verdict.GOOD], tally[Verdict.BAD], tally[Verdict.SKIP], strict=True))
        counts: dict[int, Counts] = {}
        untestable = set()
        for index, (good, bad, skipped) in rows:
            if good or bad:
                counts[index] = Counts(bad, good + bad)
            if skipped > good + bad:
                untestable.add(index)
        return cls(length, counts, frozenset(untestable), Posterior.of(length, counts, prior))

    @property
    def fails(self) -> int:
        """How many runs failed."""
        return sum(c.bad for c in self.counts.values())

    @property
    def runs(self) -> int:
        """How many runs were judged."""
        return sum(c.runs for c in self.counts.values())

    @property
    def flaky(self) -> tuple[int, ...]:
        """The indexes that both passed and failed."""
        return tuple(i for i, c in self.counts.items() if 0 < c.bad < c.runs)

    def groups(self) -> list[range]:
        """Groups of boundaries that no run can tell apart, because every index between them is untestable."""
        groups: list[range] = []
        start = 1
        for cut in range(1, self.length):
            if cut not in self.untestable or cut == self.length - 1:
                groups.append(range(start, cut + 1))
                start = cut + 1
        return groups

    def mass(self, cuts: Sequence[int]) -> float:
        """The probability that the change is at one of these boundaries."""
        return sum(self.posterior.cuts[cut] for cut in cuts)

    def runs_at(self, index: int) -> int:
        """How many runs at an index were judged."""
        return self.counts.get(index, Counts()).runs

    def shows_at(self, index: int, *, is_bad: bool) -> bool:
        """Whether a run at an index failed, or passed if `is_bad` is false."""
        counts = self.counts.get(index, Counts())
        return counts.bad > 0 if is_bad else counts.bad < counts.runs

    def shows(self, low: int, high: int) -> bool:
        """Whether a run at `low` passed and a run at `high` failed."""
        return self.shows_at(low, is_bad=False) and self.shows_at(high, is_bad=True)

    def sides(self, cut: int) -> tuple[Counts, Counts]:
        """The runs before a boundary, and those after it."""
        good = [c for i, c in self.counts.items() if i < cut]
        bad = [c for i, c in self.counts.items() if i >= cut]
        return (
            Counts(sum(c.bad for c in good), sum(c.runs for c in good)),
            Counts(sum(c.bad for c in bad), sum(c.runs for c in bad)),
        )

    def credible(self, confidence: float) -> list[int]:
        """The fewest boundaries that together have this probability, given that there is a change; likeliest first."""
        cuts = self.posterior.cuts
        wanted, chosen, total = confidence * sum(cuts), [], 0.0
        for cut in sorted(range(1, self.length), key=lambda c: -cuts[c]):
            if total >= wanted:
                break
            chosen.append(cut)
            total += cuts[cut]
        return chosen

    def chance_of_a_verdict(self, index: int) -> float:
        """The probability that a run at an index can be judged: 1 if one was, else lower next to skips."""
        if index in self.counts or not self.untestable:
            return 1.0
        distance = min(abs(index - other) for other in self.untestable)
        return distance / (distance + 2)


def informs(cuts: Sequence[float], none: float, rates: Posterior) -> tuple[float, ...]:
    """The information in bits of a run at each index, for these probabilities and the rates of a posterior.

    It is the entropy of the verdict minus its expected entropy once the hypothesis is known.
    """
    count = len(cuts)
    # Position x lies on the bad side of cuts 1..x and on the good side of the others.
    bad_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.bad, strict=True))]
    bad_left = [0.0, *accumulate(w * entropy(r) for w, r in zip(cuts, rates.bad, strict=True))]
    good_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.good, strict=True))]
    good_left = [0.0, *accumulate(w * entropy(r) for w, r in zip(cuts, rates.good, strict=True))]
    same, same_left = none * rates.same, none * entropy(rates.same)
    told = []
    for x in range(count):
        rate = bad_rate[x + 1] + good_rate[-1] - good_rate[x + 1] + same
        left = bad_left[x + 1] + good_left[-1] - good_left[x + 1] + same_left
        told.append(max(0.0, entropy(rate) - left))
    return tuple(told)
