"""Bisecting: drive a bisection over the releases of a plan and put its result into words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.engine import Engine, Watcher
from harness.investigation.anchoring import find_anchor
from harness.investigation.answer import Answer, Status
from harness.investigation.recording import Record, Recorder
from harness.investigation.wording import advice_for, sentence_for
from harness.model import Change, Judgement, Observation, Signature
from harness.search import Bisection, BisectionStatus, Trial

if TYPE_CHECKING:
    from harness.investigation.plan import Plan
    from harness.lanes import Lanes
    from harness.probe import Probe
    from harness.probers import Probing

_STATUS = {
    BisectionStatus.FOUND: Status.FOUND,
    BisectionStatus.FIXED: Status.FIXED,
    BisectionStatus.NOT_A_REGRESSION: Status.NOT_A_REGRESSION,
    BisectionStatus.NO_FAILURE: Status.NO_FAILURE,
    BisectionStatus.NOT_FIXED: Status.NOT_FIXED,
    BisectionStatus.INCONCLUSIVE: Status.INCONCLUSIVE,
    BisectionStatus.FLAKY: Status.INCONCLUSIVE,
}


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
class Bisecting:
    """One bisection over the releases of a plan."""

    plan: Plan
    prober: Probing
    lanes: Lanes
    watcher: BisectWatcher

    def run(self) -> Answer:
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
        return self._answer(search, record, time.monotonic() - begun)

    def _answer(self, search: Bisection, record: Record[Trial], wall_s: float) -> Answer:
        plan, result = self.plan, search.result
        name = {position: str(release.version) for position, release in enumerate(plan.releases)}
        sides = tuple(
            record.observations[Trial(position)]
            for position in (result.boundary or ())
            if Trial(position) in record.observations
        )
        locks = [observation.lock for observation in sides if observation.lock is not None]
        reached = [step.release for step in record.steps]
        answer = Answer(
            subject=plan.subject,
            repro=plan.repro.name,
            status=_STATUS[result.status],
            sentence="",
            signature=record.signature,
            steps=tuple(record.steps),
            last_good=name.get(result.last_good) if result.last_good is not None else None,
            first_bad=name.get(result.first_bad) if result.first_bad is not None else None,
            last_bad=name.get(result.last_bad) if result.last_bad is not None else None,
            first_good=name.get(result.first_good) if result.first_good is not None else None,
            suspects=tuple(name[position] for position in result.suspects),
            device=plan.device.value,
            python=plan.interpreter.version,
            as_of=plan.as_of,
            left_out=_between(plan, reached),
            lock_changes=_largest_first(locks[0].diff(locks[1])) if len(locks) == 2 else (),
            drift={
                name[trial.position]: observation.drift
                for trial, observation in record.observations.items()
                if observation.drift
            },
            sides=sides,
            probes=record.ran,
            wall_s=wall_s,
        )
        answer = evolve(answer, sentence=sentence_for(answer, result, name))
        return evolve(answer, advice=advice_for(answer, plan))


def _between(plan: Plan, reached: list[str]) -> dict[str, str]:
    """What was left out between the outermost releases that were judged."""
    tried = [release.version for release in plan.releases if str(release.version) in set(reached)]
    if not tried:
        return {}
    return {row.release: row.reason for row in plan.left_out if min(tried) <= Version(row.release) <= max(tried)}


def _largest_first(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: (change.step, change.name)))
