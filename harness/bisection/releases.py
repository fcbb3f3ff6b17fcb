"""The question between releases of a subject: its line, how it is announced, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.bisection.advice import advice_for
from harness.bisection.answer import Answer, QuestionRecord
from harness.bisection.boundaries import LineQuestion, candidates_of
from harness.probing import Judge
from harness.probing.line import Line, left_out_words
from harness.question.releases import Plan, find_anchor, make_plan
from harness.question.request import release_end

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.probing.lanes import Lanes
    from harness.question.question import Question
    from harness.session import Session


@frozen(kw_only=True)
class ReleaseQuestion(LineQuestion):
    """Which release of a subject, of those of a plan?"""

    plan: Plan

    def left_out(self, names: Collection[str]) -> dict[str, str]:
        """Return the releases left out between the outermost judged ones, with their reasons."""
        tried = [release.version for release in self.plan.releases if str(release.version) in names]
        if not tried:
            return {}
        return {name: why for name, why in self.reasons.items() if min(tried) <= Version(name) <= max(tried)}

    def advice(self, answer: Answer) -> str:
        """Return the next command, or what is missing."""
        return advice_for(answer, self.plan)


def release_line(session: Session, question: Question, _: Lanes) -> tuple[ReleaseQuestion, QuestionRecord]:
    """Return the releases of a question's subject as a line, and the question as the answer keeps it.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake` and `NoNetwork`.
    """
    device, why = session.device_for(question.repro)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=device)
    plan = evolve(plan, choices=(*plan.choices, *question.notes, why))
    probes, find_fix = plan.probes(session.prober), plan.question.policy.find_fix
    releases = ReleaseQuestion(
        plan=plan,
        line=Line(plan.subject, plan.names, probes, plan.good, plan.bad, find_fix),
        scope=plan.scope,
        prober=session.prober,
        judge=Judge(plan.repro.signature, session.store),
        depth=question.depth,
        announced=_announced(plan, session),
        candidates=candidates_of(plan.releases),
        reasons=plan.left_out,
    )
    return releases, record_of(plan)


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


def record_of(plan: Plan) -> QuestionRecord:
    """Return the question of a plan as an answer keeps it."""
    good, bad = (release_end(plan.names[at]) if at is not None else None for at in (plan.good, plan.bad))
    question = plan.question
    return QuestionRecord.of(plan.scope, good, bad, as_of=plan.as_of, depth=question.depth.value, typed=question.typed)
