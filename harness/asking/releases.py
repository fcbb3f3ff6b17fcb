"""Answers a question between releases: bisects those of the subject, then searches the change for the culprit."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING

from attrs import evolve
from packaging.version import Version

from harness.asking.advice import advice_for
from harness.asking.answer import Answer, Asked, Failure, Guilty, copied_project
from harness.asking.boundaries import boundary_of, candidates_of, sides_of, status_of
from harness.asking.wording import sentence_for, sentence_with_culprit
from harness.culprit.descent import find_culprit
from harness.culprit.line import Axis, Certainty, LineSearch, Searched, count_proofs, left_out_words
from harness.culprit.trials import Trials
from harness.model.culprit import Level
from harness.planning.releases import Plan, find_anchor, make_plan
from harness.probing import Judge
from harness.scheduling.scheduler import SpareLane

if TYPE_CHECKING:
    from harness.planning.inquiry import Inquiry
    from harness.request.question import Policy
    from harness.scheduling.scheduler import Lanes
    from harness.session import Session

_PROOFS = 2  # on each side: of the package, and of its lines


def ask_releases(session: Session, question: Inquiry) -> Answer:
    """Answer a question between releases of its subject.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    device, why = session.device_for(question.repro)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=device)
    plan = evolve(plan, choices=(*plan.choices, *question.told, why))
    with session.lanes(device, question.repro) as lanes:
        return investigate(session, plan, lanes)


def axis_of(plan: Plan, session: Session) -> Axis:
    """Return the releases of a plan as a line. Raises `UnknownRelease` if none can be resolved."""
    find_fix = plan.question.policy.find_fix
    return Axis(plan.subject, plan.names, plan.probes(session.prober), plan.good, plan.bad, find_fix)


def certainty_of(policy: Policy) -> Certainty:
    """Return how sure a search over a line has to be."""
    return Certainty(policy.confirm, policy.flaky, policy.confidence, policy.trust_ends)


def investigate(session: Session, plan: Plan, lanes: Lanes) -> Answer:
    """Answer a plan's question, down to its depth. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
    begun = time.monotonic()
    depth = plan.question.depth or Level.REGION
    prober, reporter = session.prober, session.reporter
    judge = Judge(plan.repro.signature, prober.store)
    line = LineSearch(axis_of(plan, session), judge, prober, lanes, reporter, certainty_of(plan.question.policy))
    searched = line.begin(patient=depth is not Level.RELEASE, captured_from="the bad end")
    line.announce(*_announced(plan, session), searched)
    searched = line.run(searched)
    answer = _answer(plan, searched)
    sides = sides_of(searched)
    culprit, ran_now = None, 0
    with contextlib.ExitStack() as stack:
        spare = None
        if sides is not None and answer.signature is not None and not searched.search.is_noisy:
            spare = stack.enter_context(contextlib.closing(_repetitions(line, searched)))
            judge = Judge(answer.signature, prober.store)
            trials = Trials(plan.scope, prober, lanes, session.index, judge, reporter, spare=spare)
            trials.tally.seen.update(observation.key for observation in searched.record.observations.values())
            culprit = find_culprit(trials, sides, depth)
            ran_now = trials.tally.ran_now
            count_proofs(searched, sides, culprit, trials.tally.failed)
        searched.search.insist()
        if not searched.search.done:
            searched = line.run(searched, spare)
    answer = evolve(_answer(plan, searched), culprit_probes=ran_now, wall_s=time.monotonic() - begun)
    if culprit is None or searched.search.is_noisy:
        return answer  # the culprit was found with single runs, which a flaky bug makes unreliable
    (failure,) = answer.failures
    guilty = Guilty(failure.culprits[0].boundary, culprit)
    answer = evolve(
        answer,
        failures=(evolve(failure, culprits=(guilty,)),),
        constraints=(guilty.constraint,) if guilty.constraint else (),
    )
    return evolve(answer, sentence=sentence_with_culprit(answer, culprit))


def _announced(plan: Plan, session: Session) -> tuple[str, tuple[str, ...]]:
    """Return the headline of a search, and the choices made for the user."""
    verb = "fixed" if plan.question.policy.find_fix else "broke"
    headline = (
        f"looking for the release that {verb} {plan.repro.name}: {plan.subject} {plan.names[0]} to {plan.names[-1]}, "
        f"{len(plan.releases)} releases, Python {plan.scope.python}, {plan.scope.device.value}"
    )
    details = list(plan.choices)
    lock = find_anchor(plan, session.prober).lock
    estimate = session.prober.builder.estimate(lock) if lock is not None else None
    if estimate is not None and not estimate.is_nothing:
        details.append(f"disk space for the first environment: {estimate} (--max-disk limits the harness's own cache)")
    if plan.repro.signature is not None:
        details.append(f"the bug is recognised by: {plan.repro.signature}")
    details += left_out_words({row.release: row.reason for row in plan.left_out})
    return headline, tuple(details)


def _answer(plan: Plan, searched: Searched) -> Answer:
    """Return the answer of a search over releases, without what is below the release."""
    reached = {step.release for step in searched.record.steps}
    boundary = boundary_of(searched, candidates_of(plan.releases), _between(plan, reached))
    status = status_of(searched)
    culprits = (Guilty(boundary),) if status.is_change else ()
    failure = Failure((), searched.record.signature, status, culprits, boundary if not culprits else None)
    constraint = boundary.constraint if status.is_change else ""
    answer = Answer(
        asked_of(plan),
        status,
        failures=(failure,),
        constraints=(constraint,) if constraint else (),
        constraints_verified=bool(constraint),
        probes=searched.record.ran,
        wall_s=searched.wall_s,
    )
    name = dict(enumerate(plan.names))
    answer = evolve(answer, sentence=sentence_for(answer, searched.search.result, name))
    return evolve(answer, advice=advice_for(answer, plan))


def asked_of(plan: Plan) -> Asked:
    """Return the question of a plan as an answer keeps it."""
    ends = {
        end: {"kind": "release", "text": plan.names[position]} if position is not None else None
        for end, position in (("good", plan.good), ("bad", plan.bad))
    }
    return Asked(
        plan.subject,
        plan.repro,
        device=plan.scope.device.value,
        python=plan.scope.python,
        as_of=plan.as_of,
        requirements=plan.scope.requirements,
        holds=plan.scope.holds,
        ends=ends,
        find_fix=plan.question.policy.find_fix,
        depth=(plan.question.depth or Level.REGION).value,
        typed=plan.question.typed,
        copied=copied_project(plan.repro),
    )


def _between(plan: Plan, reached: set[str]) -> dict[str, str]:
    """Return the releases left out between the outermost judged ones, with their reasons."""
    tried = [release.version for release in plan.releases if str(release.version) in reached]
    if not tried:
        return {}
    return {row.release: row.reason for row in plan.left_out if min(tried) <= Version(row.release) <= max(tried)}


def _repetitions(line: LineSearch, searched: Searched) -> SpareLane:
    """The repetitions that the result will need if the package and its lines are proved."""
    trials = searched.search.repetitions(_PROOFS, _PROOFS)
    return SpareLane(line.prober, line.lanes, deque(line.axis.probe(trial) for trial in trials))
