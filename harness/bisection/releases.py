"""Answers a question between releases: bisects those of the subject, then searches the change for the culprit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve
from packaging.version import Version

from harness.bisection.advice import advice_for
from harness.bisection.answer import Answer, Asked
from harness.bisection.boundaries import answer_on, boundary_of, candidates_of, search_line
from harness.culprit.descent import find_culprit
from harness.model.culprit import Finding, Level
from harness.probing import Judge
from harness.probing.line import Line, ProbedLine, Searched, left_out_words
from harness.question.releases import Plan, find_anchor, make_plan
from harness.question.request import release_end

if TYPE_CHECKING:
    from harness.culprit.proofs import Trials
    from harness.culprit.sides import Sides
    from harness.probing.lanes import Lanes
    from harness.question.question import Question
    from harness.session import Session


def ask_releases(session: Session, question: Question) -> Answer:
    """Answer a question between releases of its subject.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    device, why = session.device_for(question.repro)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=device)
    plan = evolve(plan, choices=(*plan.choices, *question.told, why))
    with session.lanes(device, question.repro) as lanes:
        return investigate(session, plan, lanes)


def investigate(session: Session, plan: Plan, lanes: Lanes) -> Answer:
    """Answer a plan's question, down to its depth. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
    prober, policy = session.prober, plan.question.policy
    candidates = Line(plan.subject, plan.names, plan.probes(prober), plan.good, plan.bad, policy.find_fix)
    judge = Judge(plan.repro.signature, session.store)
    line = ProbedLine(candidates, judge, prober, lanes, session.reporter, policy.noise)

    def find(trials: Trials, sides: Sides, _: Searched) -> tuple[Finding, ...]:
        return find_culprit(trials, sides, plan.question.depth)

    below = find if plan.question.depth is not Level.RELEASE else None
    found = search_line(line, plan.scope, session.index, _announced(plan, session), below)
    reached = {step.release for step in found.searched.record.steps}
    boundary = boundary_of(found.searched, candidates_of(plan.releases), _between(plan, reached))
    answer = answer_on(found, asked_of(plan), boundary)
    return evolve(answer, advice=advice_for(answer, plan))


def _announced(plan: Plan, session: Session) -> tuple[str, tuple[str, ...]]:
    """Return the headline of a search, and the choices made for the user."""
    verb = "fixed" if plan.question.policy.find_fix else "broke"
    headline = (
        f"looking for the release that {verb} {plan.repro.name}: {plan.subject} {plan.names[0]} to {plan.names[-1]}, "
        f"{len(plan.releases)} releases, Python {plan.scope.python}, {plan.scope.device.value}"
    )
    details = list(plan.choices)
    lock, _ = find_anchor(plan, session.prober)
    estimate = session.prober.builder.estimate(lock) if lock is not None else None
    if estimate is not None and not estimate.is_nothing:
        details.append(f"disk space for the first environment: {estimate} (--max-disk limits the harness's own cache)")
    if plan.repro.signature is not None:
        details.append(f"the bug is recognised by: {plan.repro.signature}")
    details += left_out_words(plan.left_out)
    return headline, tuple(details)


def asked_of(plan: Plan) -> Asked:
    """Return the question of a plan as an answer keeps it."""
    good, bad = (release_end(plan.names[at]) if at is not None else None for at in (plan.good, plan.bad))
    question = plan.question
    return Asked.of(plan.scope, good, bad, as_of=plan.as_of, depth=question.depth.value, typed=question.typed)


def _between(plan: Plan, reached: set[str]) -> dict[str, str]:
    """Return the releases left out between the outermost judged ones, with their reasons."""
    tried = [release.version for release in plan.releases if str(release.version) in reached]
    if not tried:
        return {}
    return {name: why for name, why in plan.left_out.items() if min(tried) <= Version(name) <= max(tried)}
