"""Bisects the releases of the subject, then searches the first changed release for the culprit."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisect.answer import Answer, Status
from harness.bisect.answering import answer_of
from harness.bisect.constraints import constraint_with
from harness.bisect.evidence import evidence_of
from harness.bisect.wording import sentence_with_culprit
from harness.culprit.counterfactual import Trials
from harness.culprit.descent import find_culprit
from harness.culprit.release_search import ReleaseSearch, Searched
from harness.culprit.sides import Side, Sides
from harness.model import Verdict
from harness.model.culprit import Culprit, Level
from harness.planning.plan import make_plan
from harness.probe import Judge
from harness.scheduling.scheduler import SpareLane
from harness.search import Trial

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.events import Reporter
    from harness.model.culprit import Culprit
    from harness.model.evidence import Evidence
    from harness.planning.plan import Plan
    from harness.probe.probe import Probing
    from harness.request.question import Question
    from harness.scheduling.scheduler import Lanes
    from harness.session import Session


_PROOFS = 2  # on each side: of the package, and of its lines


def ask(
    session: Session, question: Question, depth: Level = Level.REGION, told: tuple[str, ...] = ()
) -> tuple[Plan, Answer]:
    """Plan a question and answer it, down to `depth`; `told` are sentences about choices already made for the user.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    device, why = session.device_for(question.repro)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=device)
    plan = evolve(plan, choices=(*plan.choices, *told, why))
    with session.lanes(device, question.repro) as lanes:
        return plan, investigate(plan, session.prober, lanes, session.index, session.reporter, depth)


def investigate(plan: Plan, prober: Probing, lanes: Lanes, index: Index, reporter: Reporter, depth: Level) -> Answer:
    """Answer a plan's question, down to `depth`. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
    begun = time.monotonic()
    search = ReleaseSearch(plan, prober, lanes, reporter)
    searched = search.run(patient=depth is not Level.RELEASE)
    answer = answer_of(searched)
    sides = _sides(answer)
    culprit, ran_now = None, 0
    with contextlib.ExitStack() as stack:
        spare = None
        if sides is not None and answer.signature is not None and not searched.search.is_noisy:
            spare = stack.enter_context(contextlib.closing(_repetitions(search, searched)))
            trials = Trials(plan, prober, lanes, index, Judge(answer.signature, prober.store), reporter, spare=spare)
            trials.tally.seen.update(observation.key for observation in searched.record.observations.values())
            culprit = find_culprit(trials, sides, depth)
            ran_now = trials.tally.ran_now
            _tell(searched, sides, culprit)
        searched.search.insist()
        if not searched.search.done:
            searched = search.go_on(searched, spare)
    answer = evolve(answer_of(searched), culprit_probes=ran_now, wall_s=time.monotonic() - begun)
    if culprit is None or searched.search.is_noisy:
        return answer  # the culprit was found with single runs, which a flaky bug makes unreliable
    answer = evolve(answer, culprit=culprit)
    answer = evolve(answer, constraint=constraint_with(answer, culprit), evidence=_evidence(prober, answer, culprit))
    return evolve(answer, sentence=sentence_with_culprit(answer, culprit))


def _repetitions(search: ReleaseSearch, searched: Searched) -> SpareLane:
    """The repetitions that the result will need if the package and its lines are proved."""
    trials = searched.search.repetitions(_PROOFS, _PROOFS)
    took = max((observation.duration_s for observation in searched.record.observations.values()), default=0.0)
    return SpareLane(search.prober, search.lanes, tuple(map(search.probes(), trials)), duration_s=took)


def _tell(searched: Searched, sides: Sides, culprit: Culprit | None) -> None:
    """Count the proofs as runs of the two sides.

    A proof in a side's own lock without exchanged files is such a run. Other proofs, and a traced run of a side, count
    only if all had the expected verdict: a failed proof may be a sign of a flaky bug.
    """
    positions = dict(
        zip((sides.before.lock.id, sides.after.lock.id), searched.search.result.boundary or (), strict=False)
    )
    held = {Verdict.GOOD: 0, Verdict.BAD: 0}
    told: set[str] = set()
    is_flawless = True
    known = searched.record.observations
    for proof in (proof for finding in culprit.findings for proof in finding.proofs) if culprit else ():
        seen = proof.observation
        if seen is None or seen.lock is None or seen.key in told:
            continue
        told.add(seen.key)
        trial = Trial(positions[seen.lock.id], seen.attempt) if seen.lock.id in positions else None
        if trial is not None and not seen.mixture and known.setdefault(trial, seen).key == seen.key:
            searched.search.tell(trial, proof.verdict)
        elif proof.holds:
            held[proof.verdict] += 1
        else:
            is_flawless = False
    if is_flawless:
        searched.search.support(held[Verdict.GOOD], held[Verdict.BAD])


def _evidence(prober: Probing, answer: Answer, culprit: Culprit) -> tuple[Evidence, ...]:
    """Return what the APIs of a culprit's two releases say about the failure, if the culprit is one package."""
    raised = next((side.exception for side in answer.sides if side.exception is not None), None)
    before, after = (side.lock for side in answer.sides)
    packages = [change.name for change in culprit.packages]
    if raised is None or before is None or after is None or len(packages) != 1:
        return ()
    return evidence_of(raised, packages[0], before, after, prober.builder)


def _sides(answer: Answer) -> Sides | None:
    """Return the two sides of the change, or None if there is no certain change."""
    if answer.status not in (Status.FOUND, Status.FIXED) or len(answer.sides) != 2:
        return None
    before, after = answer.sides
    if before.lock is None or after.lock is None:
        return None
    is_fix = answer.status is Status.FIXED
    older, newer = (Verdict.BAD, Verdict.GOOD) if is_fix else (Verdict.GOOD, Verdict.BAD)
    return Sides(Side(before.lock, older, before), Side(after.lock, newer, after))
