"""Selects the runs of a noisy search with the most information for their time.

The value of a run is the mutual information of its verdict and the location of the change (Lindley, "On a measure of
the information provided by an experiment", Ann. Math. Statist. 27(4), 1956), divided by its duration in seconds.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.search.noisy_knowledge import Knowledge
    from harness.search.posterior import Posterior

_BRANCHES = 8
_DIGITS = 9  # precision of comparisons: further digits depend on how this Python adds

_Branch = tuple[float, "Sequence[float]", float]  # its probability; in it, those of the boundaries and of no change


@frozen
class NextRuns:
    """Chooses runs by what is known. Indexes run from the good end (0) to the bad end.

    `confidence` is the one at which the search ends; `seconds` returns the duration of a run at an index.
    """

    known: Knowledge
    confidence: float
    seconds: Callable[[int], float]

    def worths(self) -> list[float]:
        """The current value of a run at each index."""
        return self._worths(self.known.posterior.cuts, self.known.posterior.none)

    def choose(self, running: Sequence[int], n: int) -> list[int]:
        """The indexes of the n runs that are most informative together, besides those in progress.

        Each is chosen by its average value over the possible outcomes of the others.
        """
        posterior, length = self.known.posterior, self.known.length
        branches: list[_Branch] = [(1.0, posterior.cuts, posterior.none)]
        for index in running:
            branches = _split(branches, index, posterior)
        chosen: list[int] = []
        for left in reversed(range(n)):
            worth = [0.0] * length
            for weight, cuts, none in branches:
                for i, value in enumerate(self._worths(cuts, none)):
                    worth[i] += weight * value
            chosen.append(max(range(length), key=lambda i: (round(worth[i], _DIGITS), i)))
            branches = _split(branches, chosen[-1], posterior) if left else []
        return chosen

    def _worths(self, cuts: Sequence[float], none: float) -> list[float]:
        """Bits per second of a run at each index, 0 where it can't be run.

        Whether there is a change matters only once its location would be known; until then every run informs about
        both. The expected value is low next to a skip, because untestable releases are often consecutive.
        """
        known = self.known
        if not known.fails:
            first = next((i for i in reversed(range(known.length)) if i not in known.untestable), None)
            return [float(i == first) for i in range(known.length)]
        there = sum(cuts)
        if there > 0.2 and max(cuts) < self.confidence * there:
            bits = informs([w / there for w in cuts], 0.0, known.posterior)
        else:
            bits = informs(cuts, none, known.posterior)
        return [
            0.0 if i in known.untestable else (value + 1e-9) * known.chance_of_a_verdict(i) / max(self.seconds(i), 1e-3)
            for i, value in enumerate(bits)
        ]


def informs(cuts: Sequence[float], none: float, rates: Posterior) -> tuple[float, ...]:
    """The information in bits of a run at each index, for these probabilities and the rates of a posterior.

    It is the entropy of the verdict minus its expected entropy once the hypothesis is known.
    """
    count = len(cuts)
    # Position x lies on the bad side of cuts 1..x and on the good side of the others.
    bad_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.bad, strict=True))]
    bad_left = [0.0, *accumulate(w * _entropy(r) for w, r in zip(cuts, rates.bad, strict=True))]
    good_rate = [0.0, *accumulate(w * r for w, r in zip(cuts, rates.good, strict=True))]
    good_left = [0.0, *accumulate(w * _entropy(r) for w, r in zip(cuts, rates.good, strict=True))]
    same, same_left = none * rates.same, none * _entropy(rates.same)
    told = []
    for x in range(count):
        rate = bad_rate[x + 1] + good_rate[-1] - good_rate[x + 1] + same
        left = bad_left[x + 1] + good_left[-1] - good_left[x + 1] + same_left
        told.append(max(0.0, _entropy(rate) - left))
    return tuple(told)


def _entropy(rate: float) -> float:
    """The entropy of one verdict in bits."""
    if rate <= 0.0 or rate >= 1.0:
        return 0.0
    return -rate * math.log2(rate) - (1 - rate) * math.log2(1 - rate)


def _split(branches: Sequence[_Branch], index: int, rates: Posterior) -> list[_Branch]:
    """Split each branch by the outcome of a run at an index, bad or good; returns the likeliest few."""
    split: list[_Branch] = []
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
