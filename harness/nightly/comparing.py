"""Compares tonight with earlier nights: what broke, is still broken, was fixed, or can't be judged. Pure.

Two failures are the same break if they have the same pattern and the same culprit.
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import TYPE_CHECKING

from attrs import frozen
from packaging.version import InvalidVersion, Version

from harness.matrix.axes import PACKAGES
from harness.model.culprit import revision_of
from harness.model.signature import given_parts, normalized_message
from harness.nightly.record import CellRecord, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.matrix import Value
    from harness.model import Change, Lock, Signature


class Shown(enum.StrEnum):
    """The result of a cell's run."""

    GOOD = "good"
    BAD = "bad"  # it matches the repro's signature, or the one captured from the run if the repro has none
    ODD = "failed differently"  # it failed, but does not match the signature
    NOTHING = "nothing"  # unresolvable, uninstallable, no device, out of memory, ...


@frozen
class Seen:
    """Tonight's run of one cell. `pattern` describes the failure; `observation` is its key."""

    name: str
    choice: Mapping[str, Value]
    shown: Shown
    pattern: str = ""
    observation: str = ""


@frozen
class Compared:
    """How a cell stands tonight, and the record compared with: the cell's own, a sibling's, or None."""

    standing: Standing
    baseline: CellRecord | None

    @property
    def is_fixed(self) -> bool:
        """Whether it was bad before and is good now."""
        was = self.baseline.standing if self.baseline is not None else None
        return self.standing is Standing.GOOD and was in (Standing.BROKEN, Standing.BEFORE)


def compare(seen: Seen, past: Mapping[str, CellRecord], tonight: Mapping[str, CellRecord]) -> Compared:
    """Compare a run with its baseline; `past` and `tonight` map names to judged cells.

    The baseline is the same cell in the last night that judged it, or a sibling of a cell that was never judged.
    """
    own = past.get(seen.name)
    baseline = own or nearest_sibling(seen.choice, {**past, **tonight}.values())
    return Compared(_standing(seen, baseline), baseline)


def nearest_sibling(choice: Mapping[str, Value], others: Iterable[CellRecord]) -> CellRecord | None:
    """Return the judged cell that differs in one package only and has its next older version, or None.

    If several axes have such a cell, a good one is preferred to a broken one.
    """
    nearest: dict[str, tuple[Version, CellRecord]] = {}
    for other in others:
        axis = differing_axis(choice, other.choice)
        if axis is None or not other.standing.is_judged:
            continue
        mine, theirs = version_on(choice, axis), version_on(other.choice, axis)
        if mine is None or theirs is None or theirs >= mine:
            continue
        if axis not in nearest or theirs > nearest[axis][0]:
            nearest[axis] = (theirs, other)
    found = [nearest[axis][1] for axis in sorted(nearest)]
    return next((cell for cell in found if cell.standing is Standing.GOOD), found[0] if found else None)


def is_superseded(cell: CellRecord, others: Iterable[CellRecord], packages: Iterable[str]) -> bool:
    """Whether a newer release of one of these packages is good with everything else as in this cell."""
    axes = {f"{PACKAGES}{name}" for name in packages}
    for other in others:
        axis = differing_axis(cell.choice, other.choice)
        if axis in axes and other.standing is Standing.GOOD:
            mine, theirs = version_on(cell.choice, axis), version_on(other.choice, axis)
            if mine is not None and theirs is not None and theirs > mine:
                return True
    return False


def version_on(choice: Mapping[str, Value], axis: str) -> Version | None:
    """Return a cell's version of a package, None if the value is not a version (for example, a range)."""
    return _version(str(choice.get(axis, "")))


def differing_axis(one: Mapping[str, Value], other: Mapping[str, Value]) -> str | None:
    """Return the one package axis in which two cells differ, else None. A branch is the same value on every commit."""
    if one.keys() != other.keys():
        return None
    axes = [axis for axis in one if _meant(axis, one[axis]) != _meant(axis, other[axis])]
    return axes[0] if len(axes) == 1 and axes[0].startswith(PACKAGES) else None


def pattern_of(captured: Signature | None, matched: Signature | None) -> str:
    """Describe a failure for comparison; "" if there is no signature.

    The signature that the run matched may name any part of the message, so it is used only if none could be captured
    from the run itself (for example, for a metric out of bounds).
    """
    shown = captured or matched
    if shown is None:
        return ""
    parts = given_parts(shown) or {}
    for name in ("captured", "frame"):
        parts.pop(name, None)
    if shown.exception is not None:
        parts["exception"] = shown.exception.rpartition(".")[2]
    if shown.message is not None:
        parts["message"] = normalized_message(shown.message)
    return json.dumps(parts)


def break_id(pattern: str, culprit: Iterable[Change]) -> str:
    """Return the id of a break: ten hexadecimal digits made from its pattern and culprit."""
    what = [pattern, sorted((change.name, change.after) for change in culprit)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]


def came_between(culprit: Iterable[Change], older: Lock, newer: Lock) -> bool:
    """Whether every package of a culprit changed across its breaking version between two locks."""
    changes = tuple(culprit)
    return bool(changes) and all(
        _stepped(change, older.version_of(change.name), newer.version_of(change.name)) for change in changes
    )


def _standing(seen: Seen, baseline: CellRecord | None) -> Standing:
    if seen.shown is Shown.NOTHING:
        return Standing.UNJUDGED
    if seen.shown is Shown.GOOD:
        return Standing.GOOD
    if baseline is None:
        return Standing.BEFORE if seen.shown is Shown.BAD else Standing.UNJUDGED
    match baseline.standing:
        case Standing.GOOD | Standing.TURNED:
            return Standing.TURNED
        case Standing.FLAKY:
            return Standing.FLAKY if seen.observation == baseline.observation else Standing.TURNED
        case was if seen.pattern == baseline.pattern:
            return Standing.BROKEN if was is Standing.BROKEN else Standing.BEFORE
        case _:
            return Standing.UNJUDGED


def _meant(axis: str, value: Value) -> str:
    return revision_of(str(value)) if axis.startswith(PACKAGES) else json.dumps(value)


def _stepped(change: Change, was: str | None, now: str | None) -> bool:
    if was == now:
        return False
    versions = [_version(text) for text in (change.before, change.after, was, now)]
    before, after, here, there = versions
    if before is None or after is None or here is None or there is None:
        return (was, now) == (change.before, change.after)
    return here < after <= there if before < after else there <= after < here


def _version(text: str | None) -> Version | None:
    try:
        return None if text is None else Version(text)
    except InvalidVersion:
        return None
