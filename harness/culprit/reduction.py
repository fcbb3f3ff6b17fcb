"""Delta debugging over probes, up to a limit of runs, and what any search over a set has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, evolve, field, frozen

from harness.culprit.edits import Unit
from harness.events import Progress, Reporter
from harness.model import Judgement, Observation, Verdict
from harness.probing import Probe
from harness.probing.probe import Probing
from harness.scheduling.loop import Engine
from harness.scheduling.scheduler import Lanes
from harness.search import DeltaDebugging

Candidate = frozenset[Unit]


@frozen
class Reduced:
    """The smallest set of units that makes the difference alone, as far as the search got.

    `unproven` are the units without which it could not be judged. `shown` is the run of the set, None if no set smaller
    than all units was sufficient. `runs` counts the runs, `ran_now` those that the store did not answer,
    `unresolved` the skips. `gave_up` means that a limit ended the search. `untestable` maps the units that were skipped
    when tried alone to the reasons, the likeliest first. `told` has all verdicts and runs, so that another search can
    continue.
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
        """Add the counts of the earlier search that this one continued."""
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
    """Finds which units make the verdict `flipped` when applied alone; all of them together do, the empty set does not.

    `units` are sorted by likelihood, the most likely first; the first `singles` are tried alone before sets are.
    `requires` returns the units that a set needs. `most` limits the runs. `first` stops at the first sufficient set.
    `only_singles` stops after the first `singles` units, each tried with the units that it requires.
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
        """Run the search to its end or to the limit."""
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
        """The verdict for the search, which calls a set BAD if it has the verdict `flipped`."""
        if verdict is Verdict.SKIP:
            return verdict
        return Verdict.BAD if verdict is self.flipped else Verdict.GOOD

    def _complete(self, units: Candidate) -> Candidate:
        while self.requires is not None and (more := units | self.requires(units)) != units:
            units = more
        return units
