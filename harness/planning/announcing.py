"""The announcement of a search over releases: its range, its device, and the choices made for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.events import SearchBegan
from harness.model.text import listed

if TYPE_CHECKING:
    from harness.events import Progress
    from harness.planning.plan import Plan

_SHOWN = 5


def search_began(plan: Plan, looking_for: str, progress: Progress, *, disk: str = "") -> SearchBegan:
    """Make the event for a search over releases; `disk` is the space that its first environment needs, if known."""
    first, last = plan.releases[0].version, plan.releases[-1].version
    headline = (
        f"looking for {looking_for}: {plan.subject} {first} to {last}, {len(plan.releases)} releases, "
        f"Python {plan.interpreter.version}, {plan.device.value}"
    )
    details = list(plan.choices)
    if disk:
        details.append(f"disk space for the first environment: {disk} (--max-disk limits the harness's own cache)")
    if plan.repro.signature is not None:
        details.append(f"the bug is recognised by: {plan.repro.signature}")
    by_reason: dict[str, list[str]] = {}
    for row in plan.left_out:
        by_reason.setdefault(row.reason, []).append(row.release)
    for reason, releases in by_reason.items():
        details.append(f"left out: {listed(releases, _SHOWN)} ({reason})")
    return SearchBegan(headline, tuple(details), progress)
