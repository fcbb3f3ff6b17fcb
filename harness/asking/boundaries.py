"""Turns a search over a line into a boundary; the same for releases, commits and Pythons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.asking.answer import Status
from harness.asking.boundary import Boundary, Candidate
from harness.culprit.sides import Side, Sides
from harness.model import Verdict
from harness.search import BisectionStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.culprit.line import Searched
    from harness.model import Change, Release

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
    verdicts = (Verdict.BAD, Verdict.GOOD) if searched.axis.find_fix else (Verdict.GOOD, Verdict.BAD)
    before, after = map(Side, locks, verdicts, searched.sides)
    return Sides(before, after)


def _moved(searched: Searched) -> tuple[Change, ...]:
    """Return the difference of the locks of both sides, the largest version step first."""
    locks = [side.lock for side in searched.sides if side.lock is not None]
    if len(locks) != 2:
        return ()
    return tuple(sorted(locks[0].diff(locks[1]), key=lambda change: (change.step, change.name)))
