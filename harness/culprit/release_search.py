"""The search over releases: a bisection over a plan, driven to its end, and the record of what it saw."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import frozen

from harness.events import Progress, Reporter
from harness.model import Judgement, Observation
from harness.planning.anchor import find_anchor
from harness.planning.announcing import search_began
from harness.scheduling.loop import Engine
from harness.scheduling.recording import Record
from harness.search import Bisection, Trial

if TYPE_CHECKING:
    from harness.planning.plan import Plan
    from harness.probe import Probe
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.probers import Probing


@frozen
class Searched:
    """A finished search over the releases of a plan; `wall_s` in seconds."""

    plan: Plan
    search: Bisection
    record: Record[Trial]
    wall_s: float

    @property
    def sides(self) -> tuple[Observation, ...]:
        """The first runs just before and just after the change, in version order; fewer where they are not known."""
        boundary = self.search.result.boundary or ()
        seen = self.record.observations
        return tuple(seen[Trial(position)] for position in boundary if Trial(position) in seen)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The releases that may have brought the change, one where it is certain."""
        return tuple(str(self.plan.releases[position].version) for position in self.search.result.suspects)


@frozen
class ReleaseSearch:
    """One bisection over the releases of a plan."""

    plan: Plan
    prober: Probing
    lanes: Lanes
    reporter: Reporter

    def run(self) -> Searched:
        """Run it to its end. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
        begun = time.monotonic()
        plan = self.plan
        record = Record[Trial](plan.repro.signature, "the bad end", self.reporter)
        anchor = find_anchor(plan, self.prober)
        search = Bisection(
            len(plan.releases),
            good=plan.good,
            bad=plan.bad,
            find_fix=plan.question.find_fix,
            confirm=plan.question.confirm,
        )
        need = self.prober.builder.need(anchor.lock) if anchor.lock is not None else None
        disk = "" if need is None or need.is_nothing else str(need)

        def progress() -> Progress:
            return Progress(search.states, search.remaining())

        changed = "fixed" if plan.question.find_fix else "broke"
        wanted = f"the release that {changed} {plan.repro.name}"
        self.reporter.report(search_began(plan, wanted, progress(), disk=disk))

        def probe_of(trial: Trial) -> Probe:
            return plan.probe(trial.position, anchor.near(trial.position), trial.attempt)

        def version_of(trial: Trial) -> str:
            return str(plan.releases[trial.position].version)

        def label_of(trial: Trial) -> str:
            return version_of(trial) if trial.attempt == 0 else f"{version_of(trial)} (run {trial.attempt + 1})"

        def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
            judgement = record.judge(trial, observation, self.prober.store)
            record.write_down(version_of(trial), judgement, observation, cached=cached, attempt=trial.attempt)
            return judgement

        engine = Engine(self.prober, self.lanes, probe_of, label_of, judged, self.reporter, progress)
        # One at a time until it is known what the bug looks like: the bad end tells.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return Searched(plan, search, record, time.monotonic() - begun)
