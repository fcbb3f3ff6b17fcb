"""Makes the answer from a finished search over releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve
from packaging.version import Version

from harness.bisect.answer import Answer, Status
from harness.bisect.constraints import constraint_until_then
from harness.bisect.wording import advice_for, sentence_for
from harness.model import Change
from harness.search import BisectionStatus

if TYPE_CHECKING:
    from harness.culprit.release_search import Searched
    from harness.planning.plan import Plan

_STATUS = {
    BisectionStatus.FOUND: Status.FOUND,
    BisectionStatus.FIXED: Status.FIXED,
    BisectionStatus.NOT_A_REGRESSION: Status.NOT_A_REGRESSION,
    BisectionStatus.NO_FAILURE: Status.NO_FAILURE,
    BisectionStatus.NOT_FIXED: Status.NOT_FIXED,
    BisectionStatus.INCONCLUSIVE: Status.INCONCLUSIVE,
    BisectionStatus.FLAKY: Status.INCONCLUSIVE,
    BisectionStatus.OPEN: Status.INCONCLUSIVE,  # the levels below were to decide, and could not
}


def answer_of(searched: Searched) -> Answer:
    """Return the answer of a search over releases, without a culprit."""
    plan, record, result = searched.plan, searched.record, searched.search.result
    name = {position: str(release.version) for position, release in enumerate(plan.releases)}
    sides = searched.sides
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
        suspects=searched.suspects,
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
        altered={
            name[trial.position]: observation.altered
            for trial, observation in record.observations.items()
            if observation.altered
        },
        sides=sides,
        confidence=result.confidence,
        good_side=result.good_side,
        bad_side=result.bad_side,
        effect=result.effect,
        probes=record.ran,
        wall_s=searched.wall_s,
    )
    answer = evolve(answer, ends=_ends(plan), constraint=constraint_until_then(answer))
    answer = evolve(answer, sentence=sentence_for(answer, result, name))
    return evolve(answer, advice=advice_for(answer, plan))


def _ends(plan: Plan) -> dict[str, dict[str, str] | None]:
    """Return the two ends of a plan; None for an end that the search had to find."""
    named = {"good": plan.good, "bad": plan.bad}
    return {
        end: {"kind": "release", "text": str(plan.releases[position].version)} if position is not None else None
        for end, position in named.items()
    }


def _between(plan: Plan, reached: list[str]) -> dict[str, str]:
    """Return the releases left out between the outermost judged ones, with their reasons."""
    tried = [release.version for release in plan.releases if str(release.version) in set(reached)]
    if not tried:
        return {}
    return {row.release: row.reason for row in plan.left_out if min(tried) <= Version(row.release) <= max(tried)}


def _largest_first(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: (change.step, change.name)))
