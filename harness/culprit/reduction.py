"""Reduction: delta debugging over probes for any level; it counts runs and knows when to give up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, evolve, field, frozen

from harness.events import Progress, Reporter
from harness.model import Judgement, Observation, Verdict
from harness.probe import Probe
from harness.scheduling.lanes import Lanes
from harness.scheduling.loop import Engine
from harness.scheduling.probers import Probing
from harness.search import DeltaDebugging

Unit = str
Candidate = frozenset[Unit]


@frozen
class Reduced:
    """The smallest set of units that made the difference alone, and what is known about it.

    `runs` counts the probes that it took, `ran_now` those that the store did not answer, `unresolved` the skips;
    `untestable` maps the units that were tried alone and could not be judged to the reasons, the likeliest first;
    `told` is all that the search knows, for another one to go on from.
    """

    units: Candidate
    is_minimal: bool
    unproven: Candidate
    runs: int
    ran_now: int
    unresolved: int
    shown: Observation | None
    gave_up: bool
    untestable: dict[Unit, str] = field(factory=dict)
    told: Mapping[Candidate, tuple[Verdict, Observation]] = field(factory=dict)

    def after(self, earlier: Reduced) -> Reduced:
        """With the counts of an earlier search that this one went on from."""
        return evolve(
            self,
            runs=earlier.runs + self.runs,
            ran_now=earlier.ran_now + self.ran_now,
        )


@define
class _Seen:
    runs: int = 0
    ran_now: int = 0
    observations: dict[Candidate, Observation] = field(factory=dict)
    judgements: dict[Candidate, Judgement] = field(factory=dict)


@frozen
class Reduction:
    """Finds which units make the verdict `flipped` when applied alone; all of them do, none does not.

    `units` are in the order of likelihood; `most` limits the runs; with `first` the first sufficient set is enough;
    with `only_singles` only the first `singles` units are tried, each with its requirements.
    """

    prober: Probing
    lanes: Lanes
    judge: Callable[[Observation], Judgement]
    reporter: Reporter
    probe_of: Callable[[Candidate], Probe]
    label_of: Callable[[Candidate], str]
    flipped: Verdict
    units: tuple[Unit, ...]
    requires: Callable[[Candidate], frozenset[Unit]] | None = None
    most: int = 48
    singles: int = 16
    first: bool = False
    only_singles: bool = False

    def run(self) -> Reduced:
        """Search to the end or up to the limit."""
        search = DeltaDebugging(self.units, ranked=True, singles=self.singles, requires=self.requires)
        seen = _Seen()

        def judged(candidate: Candidate, observation: Observation, cached: bool) -> Judgement:
            judgement = self.judge(observation)
            seen.observations[candidate] = observation
            seen.judgements[candidate] = judgement
            seen.runs += observation.outcome.ran
            seen.ran_now += not cached and observation.outcome.ran
            return judgement

        engine = Engine(
            self.prober,
            self.lanes,
            self.probe_of,
            self.label_of,
            judged,
            self.reporter,
            lambda: Progress(candidates=len(self.units), tried=seen.runs),
            self._as_told,
        )
        lone = {self._complete(frozenset({unit})) for unit in self.units[: self.singles]}

        def is_enough() -> bool:
            if self.first and len(search.result.minimal) < len(self.units):
                return True
            return seen.runs >= self.most or (self.only_singles and not lone.issuperset(search.ask(1)))

        engine.drive(search, until=is_enough)
        result = search.result
        return Reduced(
            units=result.minimal,
            is_minimal=result.is_minimal and search.done,
            unproven=result.unproven,
            runs=seen.runs,
            ran_now=seen.ran_now,
            unresolved=result.unresolved,
            shown=seen.observations.get(result.minimal),
            gave_up=seen.runs >= self.most and not search.done,
            untestable={
                unit: judgement.reason
                for unit in self.units[: self.singles]
                if (judgement := seen.judgements.get(self._complete(frozenset({unit})))) is not None
                and judgement.verdict is Verdict.SKIP
            },
        )

    def _as_told(self, verdict: Verdict) -> Verdict:
        """Delta debugging calls "bad" what shows the difference."""
        if verdict is Verdict.SKIP:
            return verdict
        return Verdict.BAD if verdict is self.flipped else Verdict.GOOD

    def _complete(self, units: Candidate) -> Candidate:
        while self.requires is not None and (more := units | self.requires(units)) != units:
            units = more
        return units
