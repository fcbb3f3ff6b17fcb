"""What is likely to be the culprit, from what is known before anything is tried: traceback, calls, names. Pure.

The order decides only how soon the culprit is found, never what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.requirements import Requirement

from harness.culprit.regions import defined_names, used_names
from harness.culprit.sides import METADATA, PackageFiles, Sides
from harness.model import Change, Observation, StackFrame, normalized_name
from harness.planning.plan import Plan

Called = Mapping[str, Mapping[str, int]]
_NEVER = 10**9

# In messages of Python's own errors: "Trainer.__init__() got ...", "'Tensor' object has no attribute 'x'".
_CALL = re.compile(r"^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(\) (?:got|missing|takes)\b", re.MULTILINE)
_QUOTED = re.compile(r"['\"`]([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)['\"`]")


def ranked_packages(changes: Mapping[str, Change], sides: Sides, plan: Plan) -> tuple[str, ...]:
    """The largest steps first; among equals those of the traceback, the innermost first, then what is asked for."""
    frames = _packages_of_frames(sides)
    asked = [normalized_name(Requirement(text).name) for text in plan.repro.dependencies]
    order = [*frames, *(name for name in asked if name != plan.subject), plan.subject]

    def rank(name: str) -> tuple[int, int, int, str]:
        loaded = name in sides.after.observation.loaded
        return (changes[name].step, order.index(name) if name in order else _NEVER, 0 if loaded else 1, name)

    return tuple(sorted(changes, key=rank))


def ranked_files(
    units: Mapping[str, tuple[str, ...]], sides: Sides, plan: Plan, after: PackageFiles, called: Called
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files that a side used, the likeliest first, and the others.

    Likely is what the traceback names, what defines names of the error's message, then names that the repro uses, and
    what was called last.
    """
    used = {
        path for side in (sides.before, sides.after) for files in side.observation.loaded.values() for path in files
    }
    frames = _files_of_frames(sides)
    wanted = used_names(plan.repro.source)
    told = {name.partition(".")[0] for name in called_in_message(sides)}

    def is_used(unit: str) -> bool:
        return unit.startswith(METADATA) or not used.isdisjoint(units[unit])

    def rank(unit: str) -> tuple[int, int, int, int, str]:
        content = after.read(unit) if unit.endswith(".py") else None
        defined = defined_names(content.decode(errors="replace")) if content is not None else frozenset()
        last = max(called.get(unit, {}).values(), default=-1)
        frame = frames.index(unit) if unit in frames else _NEVER
        return (frame, 0 if defined & told else 1, 0 if defined & wanted else 1, -last, unit)

    ranked = sorted((unit for unit in units if is_used(unit)), key=rank)
    return tuple(ranked), tuple(sorted(unit for unit in units if not is_used(unit)))


def ranked_groups(groups: Iterable[str], sides: Sides, plan: Plan, called: Called, *, last: str) -> tuple[str, ...]:
    """Definitions ("path::name"): by traceback, the error's message, their last call before the end, then others."""
    told = called_in_message(sides)
    frames = [(frame.file, frame.function) for frame in _frames(sides)]
    wanted = used_names(plan.repro.source)

    def rank(group: str) -> tuple[int, int, int, int, int, str]:
        path, _, name = group.partition("::")
        method = name.rpartition(".")[2]
        in_frame = next((i for i, (file, function) in enumerate(frames) if file == path and function == method), _NEVER)
        ran = called.get(path, {}).get(name, -1)
        elsewhere = any(name in functions for file, functions in called.items() if file != path)
        return (
            1 if group == last else 0,
            in_frame,
            0 if name in told else 1,
            -ran if ran >= 0 else 0 if elsewhere else 1,
            0 if name.partition(".")[0] in wanted else 1,
            group,
        )

    return tuple(sorted(groups, key=rank))


def called_in_message(sides: Sides) -> frozenset[str]:
    """Functions that the error's message names as called: "Trainer.__init__" of "Trainer.__init__() got ..."."""
    return frozenset(_CALL.findall(_message(sides)))


def quoted_in_message(sides: Sides) -> frozenset[str]:
    """Names that the error's message quotes."""
    return frozenset(part for name in _QUOTED.findall(_message(sides)) for part in name.split("."))


def _message(sides: Sides) -> str:
    raised = _failing(sides).exception
    return raised.message if raised is not None else ""


def _failing(sides: Sides) -> Observation:
    return next(
        (side.observation for side in (sides.after, sides.before) if side.observation.exception is not None),
        sides.after.observation,
    )


def _frames(sides: Sides) -> list[StackFrame]:
    """Frames of the failing side, the innermost first."""
    failing = _failing(sides)
    return list(reversed(failing.exception.frames)) if failing.exception is not None else []


def _packages_of_frames(sides: Sides) -> list[str]:
    return list(dict.fromkeys(normalized_name(frame.package) for frame in _frames(sides) if frame.package))


def _files_of_frames(sides: Sides) -> list[str]:
    return list(dict.fromkeys(frame.file for frame in _frames(sides)))
