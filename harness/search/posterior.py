"""What runs show about a change between two failure rates: the assumptions before any run, and the posterior.

Positions run from the good end (0) to the bad end. Boundary c is the hypothesis that the positions before c fail at one
rate and those from c on at a higher one; one more hypothesis is that all fail at the same rate. The rates are unknown:
they are integrated out over a grid, under a prior.

The model is that of change-point detection with unknown rates (Fearnhead, "Exact and efficient Bayesian inference for
multiple changepoint problems", 2006, for one changepoint), with the constraint q < p on the two rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul

from attrs import frozen

from harness.model.boundary import Counts
from harness.model.verdict import Verdict
from harness.search.protocol import entropy

CONFIDENCE = 0.99


@frozen
class Noise:
    """What the user knows about a bug that may be flaky, and how often to run it again.

    `flaky`: one run does not distinguish good from bad. `confidence`: how sure an answer has to be, between 0 and 1.
    `trusts_ends`: there certainly is a change, and before it the bug never shows (except for rare noise). `confirm`:
    None repeats runs until the result is sure; a number repeats each side exactly that often, and 0 takes each verdict
    as final.
    """

    flaky: bool = False
    confidence: float = CONFIDENCE
    trusts_ends: bool = False
    confirm: int | None = None


_STEPS = 40
RATES = (0.0, *((i + 0.5) / _STEPS for i in range(_STEPS)), 1.0)

Density = tuple[float, ...]  # a weight for each of RATES


@frozen
class Kind:
    """One kind of bug: the densities of its rate on both sides of the change, restricted to good below bad."""

    good: Density
    bad: Density

    @property
    def in_order(self) -> float:
        """The probability that the rate of the good side is the lower one."""
        return math.fsum(map(mul, self.bad, (0.0, *accumulate(self.good))))


@frozen(eq=False)  # compared by identity, so that it is a cheap cache key
class Prior:
    """Kinds of bugs, equally likely, and the probability that there is no change (`no_change`).

    `same` is the density of the rate if there is no change.
    """

    kinds: tuple[Kind, ...]
    same: Density
    no_change: float


def _beta(a: float, b: float) -> Density:
    """The density of Beta(a, b) on the grid, without its ends."""
    density = [rate ** (a - 1) * (1 - rate) ** (b - 1) for rate in RATES[1:-1]]
    return (0.0, *(value / math.fsum(density) for value in density), 0.0)


def _mixed(*parts: tuple[float, Density]) -> Density:
    return tuple(math.fsum(weight * density[i] for weight, density in parts) for i in range(len(RATES)))


_ZERO = (1.0, *(0.0 for _ in RATES[1:]))
_ANY = _beta(1.0, 1.0)
_NEVER = _mixed((0.8, _ZERO), (0.2, _beta(2.0, 40.0)))  # one in five is not exact: runs are lost to other faults
_SAME = _mixed((0.1, _ZERO), (0.8, _ANY), (0.1, _ZERO[::-1]))  # flaky everywhere, or else it never fails or always

# A deterministic bug is expected: before the change it never shows, after it always, or else in a share of the runs,
# rarely a small one (else --trust-ends takes five runs more at 0 -> 0.5: flaky_search.py). Or both sides have any rate:
# with less weight on that, too many releases are wrong that are named where both sides fail often
# (simulated_investigations.py --pairs). With 0.5 instead of 0.7, a deterministic bug is run half a time more.
_BROUGHT = Kind(_NEVER, _mixed((0.7, _NEVER[::-1]), (0.3, _beta(4.0, 4.0))))
PRIOR = Prior((_BROUGHT, Kind(_ANY, _ANY)), _SAME, no_change=0.5)
TRUSTED_ENDS = Prior((_BROUGHT,), _SAME, no_change=0.0)  # the same, given that the user is right about the ends


_DOUBT = 0.01  # with 0.1 a search for packages takes 40 % more runs (simulated_investigations.py --pairs packages)
MOST_PASSES = 20


def passes_needed(failures: int, runs: int, doubt: float = _DOUBT, most: int = MOST_PASSES) -> int:
    """Return how many runs must pass before a bug counts as gone that failed in `failures` of `runs` runs.

    It is the fewest that all pass with a probability of `doubt` if the bug is still there; the rate is as uncertain as
    these runs leave it. `most` + 1 stands for more than `most`, which are too many.
    """
    weights = [*map(mul, _ANY, _likelihood(failures, runs)[1])]
    total = math.fsum(weights)
    for passes in range(1, most + 1):
        weights = [weight * (1 - rate) for weight, rate in zip(weights, RATES, strict=True)]
        if math.fsum(weights) <= doubt * total:
            return passes
    return most + 1


_LOG = tuple(math.log(rate) if rate else -math.inf for rate in RATES)
_LOG_NOT = tuple(math.log1p(-rate) if rate < 1 else -math.inf for rate in RATES)


@lru_cache(maxsize=65536)
def _likelihood(bad: int, runs: int) -> tuple[float, tuple[float, ...]]:
    """The log of the largest likelihood of these runs over the grid, and the likelihood at each rate, divided by it."""
    good = runs - bad
    logs = [(bad * a if bad else 0.0) + (good * b if good else 0.0) for a, b in zip(_LOG, _LOG_NOT, strict=True)]
    top = max(logs)
    return top, tuple(math.exp(value - top) for value in logs)


_Side = tuple[float, list[float], list[float]]  # the log of the scale, weights for each kind and rate, weights * rates


@lru_cache(maxsize=65536)
def _good_side(prior: Prior, good: Counts) -> _Side:
    """The weight of all lower rates, for each kind and rate of the bad side, after these runs of the good side."""
    scale, like = _likelihood(good.bad, good.runs)
    weights, moments = list[float](), list[float]()
    for kind in prior.kinds:
        joint = [*map(mul, kind.good[:-1], like)]
        weights += [0.0, *accumulate(joint)]
        moments += [0.0, *accumulate(map(mul, joint, RATES))]
    return scale, weights, moments


@lru_cache(maxsize=65536)
def _bad_side(prior: Prior, bad: Counts) -> _Side:
    """The weight of each kind and rate of the bad side, after these runs of it."""
    scale, like = _likelihood(bad.bad, bad.runs)
    weights, moments = list[float](), list[float]()
    for share, kind in _shares(prior):
        joint = [share * weight * value for weight, value in zip(kind.bad, like, strict=True)]
        weights += joint
        moments += map(mul, joint, RATES)
    return scale, weights, moments


@lru_cache(maxsize=8)
def _shares(prior: Prior) -> tuple[tuple[float, Kind], ...]:
    """The kinds, each with the weight of its pairs of rates."""
    return tuple((1 / len(prior.kinds) / kind.in_order, kind) for kind in prior.kinds)


@lru_cache(maxsize=65536)
def _evidence(prior: Prior, good: Counts, bad: Counts) -> tuple[float, float, float]:
    """The log evidence of two sides with rates q < p, and the mean of each rate."""
    scale_q, lower, lower_moments = _good_side(prior, good)
    scale_p, weights, moments = _bad_side(prior, bad)
    total = sum(map(mul, lower, weights))
    if total <= 0.0:
        return -math.inf, 0.0, 1.0
    mean_q, mean_p = sum(map(mul, lower_moments, weights)), sum(map(mul, lower, moments))
    return math.log(total) + scale_q + scale_p, mean_q / total, mean_p / total


@lru_cache(maxsize=4096)
def _same(prior: Prior, every: Counts) -> tuple[float, float]:
    """The log evidence of one rate everywhere, and its mean."""
    scale, like = _likelihood(every.bad, every.runs)
    weights = [*map(mul, prior.same, like)]
    total = sum(weights)
    return math.log(total) + scale, sum(map(mul, weights, RATES)) / total


@frozen
class Posterior:
    """What the runs show about the change.

    `cuts[c]` is the probability that the change is between c - 1 and c (0 for c = 0), `none` that there is no change.
    `good[c]` and `bad[c]` are the mean rates on both sides if it is there, `same` is the mean rate if there is no
    change.
    """

    cuts: tuple[float, ...]
    none: float
    good: tuple[float, ...]
    bad: tuple[float, ...]
    same: float

    @classmethod
    def of(cls, count: int, runs: Mapping[int, Counts], prior: Prior = PRIOR) -> Posterior:
        """The posterior of `count` positions after these runs; before them, every boundary is equally likely.

        Boundaries with no run between them share their evidence, so it is computed only once for each position that was
        run, whatever the count.
        """
        below, above = Counts(), Counts.total(runs.values())
        log_same, same = _same(prior, above)
        change = math.log((1 - prior.no_change) / (count - 1)) if count > 1 else -math.inf
        ran = sorted(index for index, counts in runs.items() if counts.runs and 0 <= index < count - 1)
        stretches, last = list[tuple[int, float, float, float]](), 0
        for index in (*ran, count - 1):
            if index > last:
                evidence, rate, bad_rate = _evidence(prior, below, above)
                stretches.append((index - last, change + evidence, rate, bad_rate))
            if counts := runs.get(index):
                below, above = below + counts, Counts(above.bad - counts.bad, above.runs - counts.runs)
            last = index
        no_change = prior.no_change if count > 1 else 1.0
        log_none = log_same + (math.log(no_change) if no_change else -math.inf)
        top = max([log_none, *(log for _, log, _, _ in stretches)])
        weights, good, bad = [0.0], [0.0], [0.0]
        for length, log, rate, bad_rate in stretches:
            weights += [math.exp(log - top)] * length
            good += [rate] * length
            bad += [bad_rate] * length
        none = math.exp(log_none - top)
        total = sum(weights) + none
        return cls(tuple(w / total for w in weights), none / total, tuple(good), tuple(bad), same)

    def information(self, *, of_place: bool) -> tuple[float, ...]:
        """The information in bits of a run at each position; with `of_place`, as if there certainly were a change.

        It is the entropy of the verdict minus its expected entropy once the hypothesis is known (Lindley 1956).
        """
        total = sum(self.cuts) if of_place else 1.0
        cuts, none = [cut / total for cut in self.cuts], 0.0 if of_place else self.none
        # Position x lies on the bad side of cuts 1..x and on the good side of the others.
        bad_rate = [*accumulate(map(mul, cuts, self.bad))]
        bad_left = [*accumulate(map(mul, cuts, map(entropy, self.bad)))]
        good_rate = [*accumulate(map(mul, cuts, self.good))]
        good_left = [*accumulate(map(mul, cuts, map(entropy, self.good)))]
        same, same_left = none * self.same, none * entropy(self.same)
        bits = []
        for x in range(len(cuts)):
            rate = bad_rate[x] + good_rate[-1] - good_rate[x] + same
            left = bad_left[x] + good_left[-1] - good_left[x] + same_left
            bits.append(max(0.0, entropy(rate) - left))
        return tuple(bits)


@frozen
class Evidence:
    """Judged runs by index, the indexes that were skipped more often than judged, and the posterior.

    Running an `untestable` index again is a waste. A boundary c is between the indexes c - 1 and c.
    """

    length: int
    counts: Mapping[int, Counts]
    untestable: frozenset[int]
    posterior: Posterior

    @classmethod
    def of(cls, length: int, verdicts: Iterable[tuple[int, Verdict]], prior: Prior) -> Evidence:
        """Compute what follows from verdicts by index; indexes out of range are ignored."""
        tally = {verdict: [0] * length for verdict in Verdict}
        for index, verdict in verdicts:
            if 0 <= index < length:
                tally[verdict][index] += 1
        counts = {
            index: Counts(bad, good + bad)
            for index, (good, bad) in enumerate(zip(tally[Verdict.GOOD], tally[Verdict.BAD], strict=True))
            if good or bad
        }
        skips = enumerate(tally[Verdict.SKIP])
        untestable = frozenset(
            index for index, skipped in skips if skipped and (index not in counts or skipped > counts[index].runs)
        )
        return cls(length, counts, untestable, Posterior.of(length, counts, prior))

    @property
    def every(self) -> Counts:
        """All judged runs."""
        return Counts.total(self.counts.values())

    @property
    def flaky(self) -> tuple[int, ...]:
        """The indexes that both passed and failed."""
        return tuple(index for index, counts in self.counts.items() if 0 < counts.bad < counts.runs)

    @property
    def likeliest(self) -> range:
        """The likeliest group of boundaries that no run can tell apart, because all between them are untestable.

        It is empty if there is no boundary.
        """
        groups: list[range] = []
        start = 1
        for cut in range(1, self.length):
            if cut not in self.untestable or cut == self.length - 1:
                groups.append(range(start, cut + 1))
                start = cut + 1
        return max(groups, key=self.mass, default=range(0))

    def mass(self, cuts: Sequence[int]) -> float:
        """The probability that the change is at one of these boundaries."""
        return sum(self.posterior.cuts[cut] for cut in cuts)

    def at(self, index: int) -> Counts:
        """The judged runs at an index."""
        return self.counts.get(index, Counts())

    def unshown(self, cuts: range) -> list[int]:
        """Those of the two sides of a group of boundaries that no run has shown to be good, or bad."""
        older, newer = self.at(cuts[0] - 1), self.at(cuts[-1])
        missing = ((cuts[0] - 1, older.bad == older.runs), (cuts[-1], not newer.bad))
        return [index for index, is_missing in missing if is_missing]

    def sides(self, cut: int) -> tuple[Counts, Counts]:
        """The runs before a boundary, and those after it."""
        items = self.counts.items()
        return (
            Counts.total(counts for index, counts in items if index < cut),
            Counts.total(counts for index, counts in items if index >= cut),
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

    def worths(self, seconds: Callable[[int], float], confidence: float) -> list[float]:
        """Bits per second of a run at each index, which takes so many `seconds`; 0 where it can't be run.

        Whether there is a change matters only once its location would be known, with this `confidence`; until then
        every run informs about both. The expected value is low next to a skip, because untestable releases are often
        consecutive.
        """
        if not self.every.bad:
            first = next((i for i in reversed(range(self.length)) if i not in self.untestable), None)
            return [float(i == first) for i in range(self.length)]
        cuts = self.posterior.cuts
        change = sum(cuts)
        bits = self.posterior.information(of_place=change > 0.2 and max(cuts) < confidence * change)
        return [
            0.0 if i in self.untestable else (value + 1e-9) * self.chance_of_a_verdict(i) / max(seconds(i), 1e-3)
            for i, value in enumerate(bits)
        ]
