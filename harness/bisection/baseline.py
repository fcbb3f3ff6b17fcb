"""Runs the last good packages again before a failure is called a regression, where the machine may be the cause.

That is on GPUs, on other machines and in nights: there, days may lie between the runs that an answer compares. If the
last good packages fail alike now, on the machine that failed the others, no package is the cause.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisection.advice import advice_on_machine
from harness.bisection.answer import Answer, Failure, Status
from harness.bisection.failures import FailureJudge
from harness.events import Judged, Started, run_label
from harness.model import Device, Observation, Outcome, Verdict
from harness.probing import Judge, Probe
from harness.probing.probe import prepared_since

if TYPE_CHECKING:
    from harness.events import Reporter
    from harness.model.boundary import Boundary
    from harness.model.verdict import Judgement
    from harness.probing.probe import Probing
    from harness.question.question import Question
    from harness.session import Session


def with_baseline(session: Session, question: Question, answer: Answer, *, is_night: bool = False) -> Answer:
    """Return the answer, or the one that the machine is the cause.

    That is so if the last good packages of a culprit fail alike now, or if the machine failed every run that could have
    shown the bug. Raises `Interrupted`, `NoNetwork`, `NoSpace` and `NoWorkers`.
    """
    if not answer.status.is_change:
        return _unjudged(session, answer)
    since, looked_at = oldest_baseline(session, question, is_night=is_night), set[str]()
    for failure in answer.failures if since else ():
        for culprit in failure.culprits:
            good = culprit.boundary.by_verdict.get(Verdict.GOOD)
            if good is None or good.lock is None or good.lock.id in looked_at:
                continue
            looked_at.add(good.lock.id)
            if why := _fails_today(session, question, failure, culprit.boundary, since):
                return by_machine(answer, why)
    return answer


def oldest_baseline(session: Session, question: Question, *, is_night: bool) -> str:
    """The moment (ISO 8601) from which on a run of the last good packages counts, "" where any run does."""
    may_be_sick = is_night or session.remote is not None or question.combination.device is Device.CUDA
    begun = session.now.replace(microsecond=0) - timedelta(seconds=1)  # that "now" is the end of its second
    return begun.isoformat() if may_be_sick else ""


def by_machine(answer: Answer, why: str) -> Answer:
    """Return the answer that the machine is the cause, and no package; `why` is a sentence without a full stop."""

    def cleared(failure: Failure) -> Failure:
        found = failure.culprits[0].boundary if failure.culprits else failure.boundary
        blank = evolve(found, change=evolve(found.change, before=None, after=None)) if found is not None else None
        return evolve(failure, status=Status.MACHINE, culprits=(), boundary=blank)

    failures = tuple(map(cleared, answer.failures))
    answer = evolve(answer, status=Status.MACHINE, failures=failures, constraints=(), verified_by=None, advice="")
    return evolve(answer, comparison=evolve(answer.comparison, machine=why))


def _unjudged(session: Session, answer: Answer) -> Answer:
    """Return the answer that the machine is the cause if no run showed the bug and the machine failed one of them."""
    steps = answer.boundary.steps
    if answer.status is not Status.INCONCLUSIVE or any(step.verdict is Verdict.BAD for step in steps):
        return answer
    runs = (session.store.get(step.observation) for step in steps)
    failed = [run for run in runs if run is not None and run.outcome is Outcome.MACHINE_FAILED]
    if not failed:
        return answer
    return evolve(by_machine(answer, f"the machine failed: {failed[-1].detail}"), advice=advice_on_machine(failed[-1]))


def _fails_today(session: Session, question: Question, failure: Failure, boundary: Boundary, since: str) -> str:
    """Run the last good packages of a culprit; returns why they say nothing for a regression, "" if they pass."""
    good, bad = (boundary.by_verdict[verdict] for verdict in (Verdict.GOOD, Verdict.BAD))
    repro = question.repro
    if good.repro_digest != repro.digest:
        repro = session.store.get_repro(good.repro_digest) or repro
    version = boundary.ends[1] if boundary.is_fix else boundary.ends[0]
    name = f"{boundary.subject} {version}"
    probe = Probe(repro, question.combination, lock=good.lock, fresh=True)
    judge = FailureJudge(failure.signature, session.store, tests=failure.tests)
    # Where there are other machines, the one that ran the bad side.
    host = str(bad.machine.get("host", "")) if session.remote is not None else ""
    prober = evolve(session.remote, host=host) if session.remote is not None else session.local
    label = f"the last good packages again, {name}"
    judgement, run = run_again(prober, probe, judge, label, since, session.reporter, host)
    if run.outcome is Outcome.MACHINE_FAILED:
        return f"{name} can't be judged today, because the machine failed: {run.detail}"
    is_alike = judgement.verdict is Verdict.BAD
    return f"not the packages: {name} fails here today, too: {judgement.reason}" if is_alike else ""


def run_again(
    prober: Probing, probe: Probe, judge: Judge, name: str, since: str, reporter: Reporter, host: str = ""
) -> tuple[Judgement, Observation]:
    """Return a run of a probe that began after `since` (ISO 8601), made now unless there is one, and its verdict.

    `name` is that of what runs; with `host`, only a run on that machine counts.
    """
    prepared = prepared_since(prober, probe, since, host)
    if prepared.observation is not None:
        return judge(prepared.observation), prepared.observation
    label = run_label(name, prepared.probe.attempt)
    reporter.report(Started(label))
    run = prober.execute(prepared)
    judgement = judge(run)
    reporter.report(Judged(label, judgement, run, cached=False))
    return judgement, run
