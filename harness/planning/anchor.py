"""The anchor: the lock whose other packages are kept while the releases of a plan are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import UnknownRelease

if TYPE_CHECKING:
    from harness.model import Lock
    from harness.planning.plan import Plan
    from harness.probe.probe import Probing


@frozen
class Anchor:
    """The lock near which releases are resolved, and the position of the release that it was made for, if any.

    `lock` is None if other packages come from a date, and no lock was given.
    """

    lock: Lock | None = None
    position: int | None = None

    def near(self, position: int) -> Lock | None:
        """Return the lock near which to resolve a release; None for the release that the lock was made for."""
        return None if position == self.position else self.lock


def find_anchor(plan: Plan, prober: Probing) -> Anchor:
    """Return the plan's anchor, else the lock of its bad end or of the next release that can be resolved.

    Raises `UnknownRelease` if none can be resolved.
    """
    if plan.as_of != "none" or plan.anchor is not None:
        return Anchor(plan.anchor)
    last = len(plan.releases) - 1
    start = plan.bad if plan.bad is not None else (0 if plan.question.find_fix else last)
    older, newer = range(start - 1, -1, -1), range(start + 1, last + 1)
    words = ""
    for position in (start, *((*newer, *older) if plan.question.find_fix else (*older, *newer))):
        resolution = prober.resolve(plan.probe(position, None))
        if resolution.lock is not None:
            return Anchor(resolution.lock, position)
        words = words or resolution.words
    raise UnknownRelease(
        plan.subject, "(all)", f"none can be installed: {words}", hint="--with or --hold may conflict with it"
    )
