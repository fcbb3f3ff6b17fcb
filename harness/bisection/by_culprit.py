"""What an answer says about some of its culprits, as an answer of its own."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from harness.bisection.answer import Answer, Comparison
from harness.bisection.wording import sentence_of
from harness.model import Verdict, name_of
from harness.model.culprit import Culprit


def answers_by_culprit(answer: Answer) -> tuple[Answer, ...]:
    """Return an answer for each culprit, see `answer_about`; the answer itself if it has at most one."""
    culprits = answer.culprits
    return tuple(answer_about(answer, (culprit,)) for culprit in culprits) if len(culprits) > 1 else (answer,)


def answer_about(answer: Answer, culprits: Sequence[Culprit]) -> Answer:
    """Return what an answer says about some of its culprits: their failures and constraints, in sentences of its own.

    Notes and what else differs between the two ends are left out. The run that shows the constraint of a single culprit
    to be enough is that of its good side.
    """
    names = {change.name for culprit in culprits for change in culprit.packages}
    names |= {other.subject for culprit in culprits for other in (culprit.boundary, *culprit.companions)}
    wanted = {culprit.release for culprit in culprits}
    failures = [
        evolve(failure, culprits=own)
        for failure in answer.failures
        if (own := tuple(culprit for culprit in failure.culprits if culprit.release in wanted))
    ]
    shown = answer.verified_by
    if shown is not None and len(culprits) == 1:
        shown = culprits[0].boundary.by_verdict.get(Verdict.GOOD)
    part = evolve(
        answer,
        failures=tuple(failures),
        constraints=tuple(text for text in answer.constraints if name_of(text) in names),
        verified_by=shown,
        comparison=Comparison(answer.comparison.runs, lifted=answer.comparison.lifted),
        notes=(),
    )
    return evolve(part, sentence=sentence_of(part))
