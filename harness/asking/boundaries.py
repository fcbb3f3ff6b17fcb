"""Goes below a search over a line, and turns it into a boundary; the same for releases, commits and Pythons."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

from harness.asking.answer import Boundary, Candidate, Failure, Guilty, Status
from harness.culprit.axis import AxisSearch, Certainty, Searched, count_proofs
from harness.culprit.sides import Side, Sides
from harness.culprit.trials import Trials
from harness.model import Change, Release
from harness.model.verdict import verdicts_around
from harness.scheduling.scheduler import SpareLane
from harness.search import BisectionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.environment import Index
    from harness.model.culprit import Culprit
    from harness.planning.inquiry import Scope
    from harness.request.question import Policy


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


_PROOFS = 2  # on each side: of the package, and of its lines


def with_levels_below(
    line: AxisSearch,
    searched: Searched,
    scope: Scope,
    index: Index,
    find: Callable[[Trials, Sides], Culprit | None],
    *,
    beside: bool = False,
) -> tuple[Searched, Culprit | None, int]:
    """Find what is below a change on a line, and end the search with the proofs of that as further runs of its sides.

    With `beside`, the repetitions that will be missing then run where a search for lines leaves a lane free. Returns
    the ended search, the culprit, and how many runs it took. The culprit is None, too, if single runs, with which it
    was found, turn out not to tell good from bad. Raises `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    sides, culprit, ran_now, spare = sides_of(searched), None, 0, None
    judge = searched.record.judge
    with contextlib.ExitStack() as stack:
        if sides is not None and judge.signature is not None and not searched.search.is_noisy:
            if beside:
                missing = searched.search.repetitions(_PROOFS, _PROOFS)
                spare = SpareLane(line.prober, line.lanes, deque(line.axis.probe(trial) for trial in missing))
                stack.enter_context(contextlib.closing(spare))
            trials = Trials(scope, line.prober, line.lanes, index, judge, line.reporter, spare=spare)
            trials.tally.seen.update(run.key for run in searched.record.observations.values())
            culprit = find(trials, sides)
            ran_now = trials.tally.ran_now
            count_proofs(searched, sides, culprit, trials.tally.failed)
        searched.search.insist()
        if not searched.search.done:
            if spare is not None:
                spare.finish()
            searched = line.run(searched, spare.ran if spare is not None else ())
    return searched, None if searched.search.is_noisy else culprit, ran_now


def certainty_of(policy: Policy) -> Certainty:
    """Return how sure a search over a line has to be."""
    return Certainty(policy.confirm, policy.flaky, policy.confidence, policy.trust_ends)


def failure_of(searched: Searched, boundary: Boundary, culprit: Culprit | None = None) -> Failure:
    """Return the one failure of a question over a line, with the culprit below its boundary."""
    status, signature = status_of(searched), searched.record.signature
    if not status.is_change:
        return Failure((), signature, status, boundary=boundary)
    return Failure((), signature, status, (Guilty(boundary, culprit),))


def status_of(searched: Searched) -> Status:
    """Return how the search over a line ended."""
    return _STATUS[searched.search.result.status]


def candidates_of(releases: tuple[Release, ...]) -> tuple[Candidate, ...]:
    """Return releases as the candidates of a line."""
    return tuple(
        Candidate(str(release.version), release.uploaded.date().isoformat() if release.uploaded else "")
        for release in releases
    )


def boundary_of(
    searched: Searched, candidates: tuple[Candidate, ...] = (), left_out: Mapping[str, str] | None = None
) -> Boundary:
    """Return what the search over a line found; without `candidates` they are the names of its axis.

    `left_out` maps candidates of the range that were not tried to the reason.
    """
    axis, record, result = searched.axis, searched.record, searched.search.result

    def name(position: int | None) -> str | None:
        return axis.names[position] if position is not None else None

    sides = searched.sides
    return Boundary(
        subject=axis.subject,
        unit=axis.unit,
        candidates=candidates or tuple(map(Candidate, axis.names)),
        last_good=name(result.last_good),
        first_bad=name(result.first_bad),
        last_bad=name(result.last_bad),
        first_good=name(result.first_good),
        suspects=searched.suspects,
        sides=sides,
        steps=tuple(record.steps),
        confidence=result.confidence,
        good_side=result.good_side,
        bad_side=result.bad_side,
        effect=result.effect,
        is_flaky=searched.search.is_noisy,
        left_out=dict(left_out or {}),
        drift={axis.names[trial.position]: seen.drift for trial, seen in record.observations.items() if seen.drift},
        altered={
            axis.names[trial.position]: seen.altered for trial, seen in record.observations.items() if seen.altered
        },
        moved=_moved(searched),
    )


def sides_of(searched: Searched) -> Sides | None:
    """Return the two sides of the change, the older one first; None if there is no certain change."""
    locks = [side.lock for side in searched.sides if side.lock is not None]
    if not status_of(searched).is_change or len(locks) != 2:
        return None
    return Sides(*map(Side, locks, verdicts_around(is_fix=searched.axis.find_fix), searched.sides))


def _moved(searched: Searched) -> tuple[Change, ...]:
    """Return the difference of the locks of both sides, the largest version step first."""
    locks = [side.lock for side in searched.sides if side.lock is not None]
    if len(locks) != 2:
        return ()
    return tuple(sorted(locks[0].diff(locks[1]), key=lambda change: (change.step, change.name)))
