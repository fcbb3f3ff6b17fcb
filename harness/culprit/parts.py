"""The parts of a change that are tried alone: regions, functions with several of them, and files, likeliest first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.culprit.edits import Edits, Unit
    from harness.culprit.reduction import Candidate

_FUNCTION, _FILE = 0.5, 0.1  # the likelihood of a whole, relative to its likeliest region
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
    return tuple(sorted(scores, key=lambda part: -scores[part]))
