"""The whole way: bisect the releases of the subject, then go down to what of the change made the difference."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisect.answer import Answer, Status
from harness.bisect.answering import answer_of
from harness.bisect.wording import culprit_sentence
from harness.culprit.counterfactual import Ground
from harness.culprit.descent import find_culprit
from harness.culprit.release_search import ReleaseSearch
from harness.culprit.sides import Side, Sides
from harness.model import Verdict
from harness.model.culprit import Level
from harness.planning.plan import make_plan
from harness.probe import Judge

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.events import Reporter
    from harness.planning.plan import Plan
    from harness.request.question import Question
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.probers import Probing
    from harness.session import Session


def ask(
    session: Session, question: Question, depth: Level = Level.REGION, told: tuple[str, ...] = ()
) -> tuple[Plan, Answer]:
    """Plan a question and answer it, down to `depth`, in a session; `told` is what was chosen for the user before.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    device, why = session.device_for(question.repro)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=device)
    plan = evolve(plan, choices=(*plan.choices, *told, why))
    with session.lanes(device) as lanes:
        return plan, investigate(plan, session.prober, lanes, session.index, session.reporter, depth)


def investigate(plan: Plan, prober: Probing, lanes: Lanes, index: Index, reporter: Reporter, depth: Level) -> Answer:
    """Answer a plan's question, down to `depth`. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
    begun = time.monotonic()
    answer = answer_of(ReleaseSearch(plan, prober, lanes, reporter).run())
    sides = _sides(answer)
    signature = answer.signature
    if sides is None or signature is None:
        return answer
    ground = Ground(plan, prober, lanes, index, Judge(signature, prober.store), reporter)
    culprit = find_culprit(ground, sides, depth)
    if culprit is None:
        return answer
    answer = evolve(answer, culprit=culprit, culprit_probes=ground.tally.ran_now, wall_s=time.monotonic() - begun)
    return evolve(answer, sentence=f"{answer.sentence} {culprit_sentence(answer, culprit)}".strip())


def _sides(answer: Answer) -> Sides | None:
    """The two observations around the change, where it is certain which they are."""
    if answer.status not in (Status.FOUND, Status.FIXED) or len(answer.sides) != 2:
        return None
    before, after = answer.sides
    if before.lock is None or after.lock is None:
        return None
    is_fix = answer.status is Status.FIXED
    older, newer = (Verdict.BAD, Verdict.GOOD) if is_fix else (Verdict.GOOD, Verdict.BAD)
    return Sides(Side(before.lock, older, before), Side(after.lock, newer, after))
