"""Bisecting: drive a bisection over the releases of a plan and put its result into words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen
from packaging.version import Version

from harness.engine import Engine, Watcher
from harness.errors import UnknownRelease
from harness.investigation.answer import Answer, Status, Step
from harness.investigation.wording import advice_for, sentence_for
from harness.model import Change, Judgement, Observation, Outcome, Signature, Verdict, capture_signature, judge
from harness.search import Bisection, BisectionStatus, Trial

if TYPE_CHECKING:
    from harness.investigation.plan import Plan
    from harness.lanes import Lanes
    from harness.model import Lock
    from harness.probe import Probe, Prober

_STATUS = {
    BisectionStatus.FOUND: Status.FOUND,
    BisectionStatus.FIXED: Status.FIXED,
    BisectionStatus.NOT_A_REGRESSION: Status.NOT_A_REGRESSION,
    BisectionStatus.NO_FAILURE: Status.NO_FAILURE,
    BisectionStatus.NOT_FIXED: Status.NOT_FIXED,
    BisectionStatus.INCONCLUSIVE: Status.INCONCLUSIVE,
    BisectionStatus.FLAKY: Status.INCONCLUSIVE,
}


@define
class Record:
    """What a bisection has seen so far, in the order in which it was told."""

    signature: Signature | None
    steps: list[Step] = field(factory=list)
    observations: dict[Trial, Observation] = field(factory=dict)
    ran: int = 0


@frozen
class Progress:
    """A view on a running bisection, for whoever draws it; `disk` says what is foreseen of it, where that is known."""

    plan: Plan
    search: Bisection
    record: Record
    disk: str = ""


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
    prober: Prober
    lanes: Lanes
    watcher: BisectWatcher

    def run(self) -> Answer:
        """Run it to its end. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
        begun = time.monotonic()
        plan = self.plan
        record = Record(plan.repro.signature)
        anchored, near = self._anchor()
        search = Bisection(
            len(plan.releases),
            good=plan.good,
            bad=plan.bad,
            find_fix=plan.question.find_fix,
            confirm=plan.question.confirm,
        )
        need = self.prober.builder.need(near) if near is not None else None
        self.watcher.begin(Progress(plan, search, record, disk="" if need is None or need.is_nothing else str(need)))

        def probe_of(trial: Trial) -> Probe:
            return plan.probe(trial.position, None if trial.position == anchored else near, trial.attempt)

        def told(trial: Trial, observation: Observation) -> Judgement:
            record.observations[trial] = observation
            return self._judge(record, observation)

        engine = Engine(self.prober, self.lanes, probe_of, told, _Recorder(self, record))
        # One at a time until it is known what the bug looks like: the bad end tells.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return self._answer(search, record, time.monotonic() - begun)

    def _anchor(self) -> tuple[int | None, Lock | None]:
        """With companions held: the lock near which releases are tried, and the position that it is the lock of.

        It is the plan's own, or that of the bad end or of the first release from there that can be resolved.
        """
        plan = self.plan
        if plan.as_of != "none" or plan.anchor is not None:
            return None, plan.anchor
        step = 1 if plan.question.find_fix else -1
        start = plan.bad if plan.bad is not None else (0 if plan.question.find_fix else len(plan.releases) - 1)
        words = ""
        for position in range(start, len(plan.releases) if step > 0 else -1, step):
            resolution = self.prober.resolve(plan.probe(position, None))
            if resolution.lock is not None:
                return position, resolution.lock
            words = words or resolution.words
        raise UnknownRelease(
            plan.subject, "(all)", f"none can be resolved: {words}", hint="--with and --hold may ask too much"
        )

    def _judge(self, record: Record, observation: Observation) -> Judgement:
        log = self.prober.store.log(observation) if _needs_log(record.signature, observation) else ""
        if record.signature is None:
            record.signature = capture_signature(observation, log)
            if record.signature is None:
                if observation.outcome is Outcome.COMPLETED:
                    return Judgement(Verdict.GOOD, "ran to its end")
                return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)
            self.watcher.captured(record.signature)
        return judge(observation, record.signature, log)

    def _answer(self, search: Bisection, record: Record, wall_s: float) -> Answer:
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


class _Recorder(Watcher[Trial]):
    """Writes steps down before it passes them on."""

    def __init__(self, bisecting: Bisecting, record: Record) -> None:
        self._bisecting = bisecting
        self._record = record

    def preparing(self, candidate: Trial) -> None:
        self._bisecting.watcher.preparing(candidate)

    def running(self, candidate: Trial) -> None:
        self._bisecting.watcher.running(candidate)

    def told(self, candidate: Trial, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        release = str(self._bisecting.plan.releases[candidate.position].version)
        self._record.steps.append(
            Step(
                release=release,
                verdict=judgement.verdict,
                reason=judgement.reason,
                observation=observation.key,
                cached=cached,
                seconds=0.0 if cached else observation.duration_s,
                attempt=candidate.attempt,
            )
        )
        self._record.ran += not cached and observation.outcome.ran
        self._bisecting.watcher.told(candidate, judgement, observation, cached=cached)


def _needs_log(signature: Signature | None, observation: Observation) -> bool:
    if signature is None:
        return observation.outcome is Outcome.EXITED
    return signature.output is not None


def _between(plan: Plan, reached: list[str]) -> dict[str, str]:
    """What was left out between the outermost releases that were judged."""
    tried = [release.version for release in plan.releases if str(release.version) in set(reached)]
    if not tried:
        return {}
    return {row.release: row.reason for row in plan.left_out if min(tried) <= Version(row.release) <= max(tried)}


def _largest_first(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: (change.step, change.name)))
