"""The parts of a change that are tried alone: regions, functions with several of them, and files, likeliest first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.culprit.edits import Edits, Unit
    from harness.culprit.pursuit import Candidate

_FUNCTION, _FILE = 0.5, 0.1  # the likelihood of a whole, relative to its likeliest region
_BEFORE_GROUPS = 8  # likely parts that come before the groups of files
_LEAST = 0.1  # regions below are comments and layout, or in functions that never ran


def parts_of(edits: Edits, weights: Mapping[Unit, float], serving: Collection[Unit]) -> tuple[Candidate, ...]:
    """The sets of units to try alone, the likeliest first; of `serving` units, only within their files."""
    scores: dict[Candidate, float] = {}
    wholes: dict[tuple[str, str], set[Unit]] = {}
    for unit, weight in weights.items():
        if not edits.is_region(unit):
            scores[frozenset({unit})] = weight
            continue
        path, function = edits.path_of(unit), edits.function(unit)
        wholes.setdefault((path, ""), set()).add(unit)
        if function and edits.differences[path].is_function(function):
            wholes.setdefault((path, function), set()).add(unit)
        if unit not in serving and weight >= _LEAST:
            scores[frozenset({unit})] = weight
    for (_, function), units in wholes.items():
        share = _FUNCTION if function else _FILE
        likeliest = max(weights[unit] for unit in units)
        if likeliest >= _LEAST:
            scores.setdefault(frozenset(units), share * likeliest)
    order = sorted(scores, key=lambda part: -scores[part])
    # One run each clears all files that the run did not import, and all compiled ones.
    groups = [part for part in order if any(unit in edits.wholes and unit not in edits.wholes[unit] for unit in part)]
    singles = [part for part in order if part not in groups]
    return (*singles[:_BEFORE_GROUPS], *groups, *singles[_BEFORE_GROUPS:])
