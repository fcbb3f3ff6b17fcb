"""What the runs of a noisy search show. Index 0 is the good end, the last index is the bad end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.verdict import Verdict
from harness.search.posterior import Counts, Posterior

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.search.prior import Prior


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
