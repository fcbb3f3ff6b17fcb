"""The search over releases: a bisection over a plan, driven to its end, and the record of what it saw."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model import Judgement, Observation, Signature
from harness.planning.anchor import find_anchor
from harness.scheduling.loop import Engine, Watcher
from harness.scheduling.recording import Record, Recorder
from harness.search import Bisection, Trial

if TYPE_CHECKING:
    from harness.planning.plan import Plan
    from harness.probe import Probe
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.probers import Probing


@frozen
class Progress:
    """A view on a running bisection, for whoever draws it; `disk` says what is foreseen of it, where that is known."""

    plan: Plan
    search: Bisection
    record: Record[Trial]
    captured_from: str = "the bad end"
    disk: str = ""

    @property
    def headline(self) -> str:
        """What is looked for."""
        what = "release that fixed" if self.plan.question.find_fix else "release that broke"
        return f"looking for the {what} {self.plan.repro.name}"

    def name(self, candidate: Trial) -> str:
        """A release's version, and which repetition of it."""
        version = str(self.plan.releases[candidate.position].version)
        return version if candidate.attempt == 0 else f"{version} (run {candidate.attempt + 1})"


class BisectWatcher(Watcher[Trial]):
    """A watcher that is also told when a bisection begins and which signature it uses."""

    def begin(self, progress: Progress) -> None:
        """The plan is made; nothing has run yet."""

    def captured(self, signature: Signature) -> None:
        """No signature was given; this one was taken from the bad end."""


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
    watcher: BisectWatcher

    def run(self) -> Searched:
        """Run it to its end. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
        begun = time.monotonic()
        plan = self.plan
        record = Record[Trial](plan.repro.signature)
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
        self.watcher.begin(Progress(plan, search, record, disk=disk))

        def probe_of(trial: Trial) -> Probe:
            return plan.probe(trial.position, anchor.near(trial.position), trial.attempt)

        def told(trial: Trial, observation: Observation) -> Judgement:
            return record.judged(trial, observation, self.prober.store, self.watcher.captured)

        def named(trial: Trial) -> tuple[str, int]:
            return str(plan.releases[trial.position].version), trial.attempt

        engine = Engine(self.prober, self.lanes, probe_of, told, Recorder(record, named, self.watcher))
        # One at a time until it is known what the bug looks like: the bad end tells.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return Searched(plan, search, record, time.monotonic() - begun)
