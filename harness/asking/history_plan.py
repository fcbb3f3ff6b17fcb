"""The plan of a history: the range of releases, the versions of other packages, and the scan interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.repro import Bounds
from harness.planning.releases import Plan, check_ends, fill_plan, why_left_out
from harness.request.parsing import version_of
from harness.search.windows import stride_for

if TYPE_CHECKING:
    from harness.environment import Index, Interpreter
    from harness.model import Device
    from harness.planning.inquiry import Inquiry


@frozen
class HistoryPlan:
    """The plan of a scan; of `stride` adjacent releases at least one is run or known.

    `plan.bad` is the position of the release whose other packages are kept for all probes; None: the newest release
    that can be resolved.
    """

    plan: Plan
    stride: int


def make_history_plan(
    question: Inquiry,
    *,
    since: str | None,
    until: str | None,
    max_gap: int | None,
    index: Index,
    interpreter: Interpreter,
    device: Device,
) -> HistoryPlan:
    """Make the plan of a scan. By default it goes from the repro's older bound to the newest release,
    if possible with under a third of them run.

    `since` and `until` are versions; `max_gap` is the stride. Raises the same errors as `make_plan`.
    """
    bounds = question.repro.subjects.get(normalized_name(question.subject), Bounds())
    choices: list[str] = []
    if since is None:
        since = _older_bound(bounds, until)
        where = f"{since} (from the repro" if since else "the oldest release (the repro has no bounds"
        choices.append(f"from {where}; --from changes it)")
    if until is None:
        choices.append("up to the newest release (--to changes it)")
    check_ends(index, question.subject, (since, until))
    if since is not None and until is not None and version_of(since) > version_of(until):
        raise UserMistake(f"--from {since} is newer than --to {until}", hint="swap them")
    near = _kept_near(question, bounds, since, until, index, interpreter)
    plan = fill_plan(
        question,
        since,
        until,
        choices,
        index=index,
        interpreter=interpreter,
        device=device,
        near=near or until or "the newest release",
    )
    versions = [str(release.version) for release in plan.releases]
    stride = max_gap or stride_for(len(versions))
    if max_gap is None and stride > 1:
        choice = f"at least one of every {stride} adjacent releases is run or known (--max-gap changes it)"
        plan = evolve(plan, choices=(*plan.choices, choice))
    anchored = versions.index(str(version_of(near))) if near is not None else None
    return HistoryPlan(evolve(plan, good=None, bad=anchored), stride)


def _older_bound(bounds: Bounds, until: str | None) -> str | None:
    """Return the older of the repro's bounds if it is before `until`, else None."""
    known = sorted((end for end in (bounds.good, bounds.bad) if end is not None), key=Version)
    return known[0] if known and (until is None or Version(known[0]) < version_of(until)) else None


def _kept_near(
    question: Inquiry, bounds: Bounds, since: str | None, until: str | None, index: Index, interpreter: Interpreter
) -> str | None:
    """Return the repro's bad bound if it is in the range and can be tried, else None.

    A bisection keeps other packages near the same release, so the two share their runs.
    """
    if bounds.bad is None:
        return None
    bad = version_of(bounds.bad)
    release = index.release(question.subject, str(bad))
    inside = (since is None or version_of(since) <= bad) and (until is None or bad <= version_of(until))
    if release is None or not inside:
        return None
    left_out = why_left_out(release, question, interpreter, frozenset(interpreter.wheel_tags()))
    return bounds.bad if left_out is None else None
