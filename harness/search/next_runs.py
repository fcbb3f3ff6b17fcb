"""Selects the run of a noisy search with the most information for its time.

A run is worth the mutual information of its verdict and the location of the change (Lindley, "On a measure of the
information provided by an experiment", Ann. Math. Statist. 27(4), 1956), divided by its duration in seconds.
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
_DIGITS = 9  # by which two worths are compared: their last ones depend on how a Python adds

_Branch = tuple[float, "Sequence[float]", float]  # its chance; the chances of boundaries, and of none, in it


@frozen
class NextRuns:
    """The choice of runs after what is known. Indexes run from the good end (0) to the bad end.

    `confidence` is that at which the search ends; `seconds` is what a run at an index takes.
    """

    known: Knowledge
    confidence: float
    seconds: Callable[[int], float]

    def worths(self) -> list[float]:
        """What a run at each index is worth now."""
        return self._worths(self.known.posterior.cuts, self.known.posterior.none)

    def choose(self, running: Sequence[int], n: int) -> list[int]:
        """The n runs that together tell most beside those that are running: each is chosen over how these may end."""
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
        """Bits for each second; nothing where it can't be run.

        Whether there is a change matters once its place would be known: until then every run informs about both.
        Little is expected beside a skip, because untestable releases come in sequences.
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
    """Bits that a run at each index tells, with these chances and the rates of a posterior.

    The entropy of the verdict less what is left of it where the hypothesis is known.
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
    """Of one verdict, in bits."""
    if rate <= 0.0 or rate >= 1.0:
        return 0.0
    return -rate * math.log2(rate) - (1 - rate) * math.log2(1 - rate)


def _split(branches: Sequence[_Branch], index: int, rates: Posterior) -> list[_Branch]:
    """Each branch after a run at an index that ended bad, and after one that ended good; the likeliest few."""
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
