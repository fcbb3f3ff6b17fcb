"""Finds functions whose parameters differ between two releases."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harness.culprit.api_sources import ReleaseApi, look_up, named, place_of
from harness.model.culprit import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    import griffe


def changed_call(name: str, argument: str, before: ReleaseApi, after: ReleaseApi) -> Iterator[Evidence]:
    """Evidence on the functions of this name whose parameters differ; with `argument`, only if that parameter does."""
    owner, _, last = name.rpartition(".")
    for old in named(before.api, last, "function"):
        if owner and not old.path.endswith(f".{name}"):
            continue
        new = look_up(after.api, old.path)
        if new is None or not new.is_function:
            continue
        with contextlib.suppress(Exception):
            yield from _changed_parameters(old, new, argument, before.version, after.version)


def _changed_parameters(
    old: griffe.Object, new: griffe.Object | griffe.Alias, argument: str, *versions: str
) -> Iterator[Evidence]:
    was, now = _parameters(old), _parameters(new)
    gone, added = [one for one in was if one not in now], [one for one in now if one not in was]
    if was == now or (argument and argument not in gone and argument not in added):
        return
    if argument:
        gone, added = [one for one in gone if one == argument], [one for one in added if one == argument]
    words = [f"{one} is gone" for one in gone]
    words += [f"{one} is new" + (" and required" if now[one] else "") for one in added]
    what = ", ".join(words) or "their order or kinds differ"
    file, line = place_of(old)
    text = f"{old.path} has other parameters in {versions[1]} than in {versions[0]} ({file}:{line}): {what}"
    yield Evidence("changed-parameters", old.path, text, file, line)


def _parameters(function: griffe.Object | griffe.Alias) -> dict[str, bool]:
    """The parameters by name, stars included, and whether each is required."""
    told = getattr(function, "parameters", ())
    return {f"{'*' * _stars(one)}{one.name.lstrip('*')}": one.required and not _stars(one) for one in told}


def _stars(parameter: griffe.Parameter) -> int:
    kind = parameter.kind.value if parameter.kind else ""
    return {"variadic positional": 1, "variadic keyword": 2}.get(kind, 0)
