"""Makes the answer of a bisection over commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisect.answer import Answer, Status
from harness.bisect.commit_wording import sentence_of
from harness.culprit.commit_runs import CommitSource, bisected, finding_of
from harness.model import Change, Verdict
from harness.model.culprit import Culprit, Finding, Level
from harness.model.verdict import Step

if TYPE_CHECKING:
    from harness.planning.plan import Plan


def search_commits(plan: Plan, source: CommitSource, chain: tuple[str, ...]) -> Answer:
    """Run both ends of a chain of commits (hashes, the oldest first), bisect it if they differ, and return the answer.

    Raises `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    older, newer = source.base, source.newer.sha
    was, now = source.sides.before.verdict, source.sides.after.verdict
    differ = source.run(newer) is now and source.run(older) is was
    found = bisected(source, chain) if differ else ""
    answer = _answer_of_runs(plan, source)
    if isinstance(found, str):
        answer = evolve(answer, status=Status.INCONCLUSIVE if differ else _why_not_found(source, older, newer))
        return evolve(answer, sentence=sentence_of(answer, source.repository, found))
    is_fix = plan.question.find_fix
    before, after = (sha[:10] for sha in found)
    moved = Finding(Level.COMMIT, (Change(plan.subject, before, after),))
    answer = evolve(
        answer,
        status=Status.FIXED if is_fix else Status.FOUND,
        culprit=Culprit((finding_of(source, found, moved, len(chain)),)),
        suspects=(after,),
        last_good=None if is_fix else before,
        first_bad=None if is_fix else after,
        last_bad=before if is_fix else None,
        first_good=after if is_fix else None,
    )
    return evolve(answer, sentence=sentence_of(answer, source.repository, ""))


def _answer_of_runs(plan: Plan, source: CommitSource) -> Answer:
    runs = source.runs.judged
    steps = (
        Step(sha[:10], judged.verdict, judged.reason, seen.key, cached=False, seconds=seen.duration_s)
        for sha, (judged, seen) in runs.items()
    )
    return Answer(
        subject=plan.subject,
        repro=plan.repro.name,
        status=Status.INCONCLUSIVE,
        sentence="",
        signature=source.trials.judge.signature,
        steps=tuple(steps),
        device=plan.device.value,
        python=plan.interpreter.version,
        as_of=plan.as_of,
        probes=len(runs),
    )


def _why_not_found(source: CommitSource, older: str, newer: str) -> Status:
    """Return the status of a question whose two ends do not have the expected verdicts."""
    verdict = source.runs.verdict(newer)
    is_fix = source.sides.before.verdict is Verdict.BAD
    if Verdict.SKIP in (verdict, source.runs.verdict(older)):
        return Status.INCONCLUSIVE
    if is_fix:
        return Status.NOT_FIXED if verdict is Verdict.BAD else Status.NO_FAILURE
    return Status.NO_FAILURE if verdict is Verdict.GOOD else Status.NOT_A_REGRESSION
