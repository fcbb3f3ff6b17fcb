"""Ranks packages, and reads names from the failure's message, to try the likely culprits first. Pure.

The order only decides how soon the culprit is found, never what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.requirements import Requirement

from harness.culprit.sides import Sides
from harness.model import Change, Observation, RaisedException, StackFrame, normalized_name
from harness.planning.plan import Plan

_NEVER = 10**9

# In messages of Python's own errors: "Trainer.__init__() got ...", "'Tensor' object has no attribute 'x'".
_CALL = re.compile(r"^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(\) (?:got|missing|takes)\b", re.MULTILINE)
_QUOTED = re.compile(r"['\"`]([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)['\"`]")


def ranked_packages(changes: Mapping[str, Change], sides: Sides, plan: Plan) -> tuple[str, ...]:
    """The names of the changed packages, the most likely culprit first.

    The largest version steps come first. Among equal steps, the order is: packages in the traceback, the innermost
    first; packages that the repro requires; the subject; loaded packages; the rest by name.
    """
    frames = _packages_of_frames(sides)
    asked = [normalized_name(Requirement(text).name) for text in plan.repro.dependencies]
    order = [*frames, *(name for name in asked if name != plan.subject), plan.subject]

    def rank(name: str) -> tuple[int, int, int, str]:
        loaded = name in sides.after.observation.loaded
        return (changes[name].step, order.index(name) if name in order else _NEVER, 0 if loaded else 1, name)

    return tuple(sorted(changes, key=rank))


def called_in_message(sides: Sides) -> frozenset[str]:
    """The functions whose call the message is about: "Trainer.__init__" for "Trainer.__init__() got ..."."""
    return frozenset(_CALL.findall(_message(sides)))


def quoted_in_message(sides: Sides) -> frozenset[str]:
    """The names in quotes in the failure's message; a dotted name is split into its parts."""
    return frozenset(part for name in _QUOTED.findall(_message(sides)) for part in name.split("."))


def failure_of(sides: Sides) -> RaisedException | None:
    """The exception of the failing side; None if no side has one."""
    return _failing(sides).exception


def _message(sides: Sides) -> str:
    raised = failure_of(sides)
    return raised.message if raised is not None else ""


def _failing(sides: Sides) -> Observation:
    return next(
        (side.observation for side in (sides.after, sides.before) if side.observation.exception is not None),
        sides.after.observation,
    )


def _frames(sides: Sides) -> list[StackFrame]:
    """The frames of the failing side, the innermost first; empty without an exception."""
    failing = _failing(sides)
    return list(reversed(failing.exception.frames)) if failing.exception is not None else []


def _packages_of_frames(sides: Sides) -> list[str]:
    return list(dict.fromkeys(normalized_name(frame.package) for frame in _frames(sides) if frame.package))
