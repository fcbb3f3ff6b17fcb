"""The search over releases: runs a bisection over a plan and keeps a record of its runs.

It can continue later: runs of the two sides at deeper levels count as repetitions, for or against the result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.events import Progress, Reporter
from harness.model import Judgement, Observation, Verdict
from harness.planning.anchor import find_anchor
from harness.planning.announcing import search_began
from harness.probe.judge import Record
from harness.scheduling.loop import PATIENCE_S, Engine
from harness.scheduling.scheduler import RanBeside, SpareLane
from harness.search import Gauges, Noise, SureBisection, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.planning.plan import Plan
    from harness.probe import Probe
    from harness.probe.probe import Probing
    from harness.scheduling.scheduler import Lanes


@frozen
class Searched:
    """A finished search over the releases of a plan; `wall_s` in seconds."""

    plan: Plan
    search: SureBisection
    record: Record[Trial]
    wall_s: float

    @property
    def sides(self) -> tuple[Observation, ...]:
        """One run of each side of the change with the verdict of that side, the older side first; fewer if unknown."""
        boundary = self.search.result.boundary or ()
        verdicts = (Verdict.GOOD, Verdict.BAD)
        if self.plan.question.find_fix:
            verdicts = (Verdict.BAD, Verdict.GOOD)
        seen = self.record.observations
        trials = (self.search.verdict_of(*side) for side in zip(boundary, verdicts, strict=False))
        return tuple(seen[trial] for trial in trials if trial in seen)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The releases that may have introduced the change; a single one if it is certain."""
        return tuple(str(self.plan.releases[position].version) for position in self.search.result.suspects)


@frozen
class ReleaseSearch:
    """Bisects over the releases of a plan."""

    plan: Plan
    prober: Probing
    lanes: Lanes
    reporter: Reporter

    def run(self, *, patient: bool = False) -> Searched:
        """Run the search to its end; with `patient`, deeper levels do the repetitions of the two sides.

        Raises `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        plan = self.plan
        record = Record[Trial](plan.repro.signature, "the bad end", self.reporter)
        anchor = find_anchor(plan, self.prober)
        search = SureBisection(
            len(plan.releases),
            good=plan.good,
            bad=plan.bad,
            find_fix=plan.question.find_fix,
            confirm=plan.question.confirm,
            noise=Noise(plan.question.flaky, plan.question.confidence, plan.question.trust_ends),
            patient=patient,
            gauges=Gauges(lambda position: _seconds(record, position), lambda trial: _number(record, trial)),
        )
        estimate = self.prober.builder.estimate(anchor.lock) if anchor.lock is not None else None
        disk = "" if estimate is None or estimate.is_nothing else str(estimate)

        changed = "fixed" if plan.question.find_fix else "broke"
        wanted = f"the release that {changed} {plan.repro.name}"
        self.reporter.report(search_began(plan, wanted, _progress(search), disk=disk))
        return self.go_on(Searched(plan, search, record, 0.0))

    def probes(self) -> Callable[[Trial], Probe]:
        """A function that returns the probe of a trial. Raises `UnknownRelease` if no release can be resolved."""
        anchor = find_anchor(self.plan, self.prober)
        return lambda trial: self.plan.probe(trial.position, anchor.near(trial.position), trial.attempt)

    def go_on(self, searched: Searched, beside: SpareLane | None = None) -> Searched:
        """Continue a search to its end, with everything it knows.

        `beside` has the runs that were made beside another search. Raises the same as `run`.
        """
        begun = time.monotonic()
        plan, search, record = searched.plan, searched.search, searched.record
        prober = RanBeside(self.prober, beside)

        def version_of(trial: Trial) -> str:
            return str(plan.releases[trial.position].version)

        def label_of(trial: Trial) -> str:
            return version_of(trial) if trial.attempt == 0 else f"{version_of(trial)} (run {trial.attempt + 1})"

        def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
            judgement = record.judge(trial, observation, self.prober.store)
            record.write_down(version_of(trial), judgement, observation, cached=cached, attempt=trial.attempt)
            return judgement

        engine = Engine(
            prober,
            self.lanes,
            self.probes(),
            label_of,
            judged,
            self.reporter,
            lambda: _progress(search),
            patience_s=PATIENCE_S,
        )
        # One at a time until there is a signature: it may be captured from the bad end.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return evolve(searched, wall_s=searched.wall_s + time.monotonic() - begun)


def _progress(search: SureBisection) -> Progress:
    return Progress(search.states, search.remaining())


def _seconds(record: Record[Trial], position: int) -> float:
    """The expected seconds of a run at a position: the mean of its runs, else the mean of all runs with their setup."""
    seen = [o for trial, o in record.observations.items() if trial.position == position]
    if seen:
        return sum(o.duration_s for o in seen) / len(seen) or 1.0
    every = list(record.observations.values())
    return sum(o.duration_s + o.setup_s for o in every) / len(every) or 1.0 if every else 1.0


def _number(record: Record[Trial], trial: Trial) -> float | None:
    """The number by which a run was judged; None if it was judged by something else."""
    observation = record.observations.get(trial)
    return None if observation is None or record.signature is None else record.signature.number(observation)
