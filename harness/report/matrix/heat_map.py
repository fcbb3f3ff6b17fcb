"""Heat maps of a pivoted matrix: one with a level of headings per horizontal axis, or several if it is too wide."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from attrs import evolve

from harness.model.verdict import in_words
from harness.report.matrix.content import Chip, Head, HeatMap, HeatRow
from harness.report.matrix.pivot import Choice, Pivot, axis_name, differences, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.matrix import Cell
    from harness.matrix.running import Standing


def heat_maps(
    laid: Pivot, standings: Sequence[Standing], ids: Sequence[str], labels: Sequence[str]
) -> tuple[HeatMap, ...]:
    """Return the heat maps of a pivot; `ids` link to panels, `labels` name the cells."""
    chips = [
        Chip(
            one_id,
            state_class(one.word),
            one.word,
            f"{label}: {in_words(one.word)}" + (f", {one.reason}" if one.reason else ""),
        )
        for one, one_id, label in zip(standings, ids, labels, strict=True)
    ]
    cells = [standing.cell for standing in standings]
    return tuple(_map(title, part, chips, cells) for title, part in parts(laid))


def neighbours(laid: Pivot) -> dict[int, tuple[int, ...]]:
    """Map each cell to the older cells that differ only on the vertical axis (positions, the nearest last)."""
    found: dict[int, tuple[int, ...]] = {}
    for column in laid.columns:
        older: tuple[int, ...] = ()
        for row in laid.rows:
            here = laid.places.get((row, column), ())
            found |= dict.fromkeys(here, older)
            older = (*older, *here[:1])
    return found


def state_class(word: str) -> str:
    """The CSS class for the word of a verdict."""
    return word.replace(" ", "-")


def _map(title: str, laid: Pivot, chips: Sequence[Chip], cells: Sequence[Cell]) -> HeatMap:
    rows = []
    for row in laid.rows:
        places = [laid.places.get((row, column), ()) for column in laid.columns]
        rows.append(HeatRow(row or "-", tuple(_place(place, chips, cells) for place in places)))
    heads = tuple((axis_name(axis), _level(laid.columns, level)) for level, axis in enumerate(laid.across))
    return HeatMap(title, axis_name(laid.down), heads, tuple(rows))


def _level(columns: Sequence[Choice], level: int) -> tuple[Head, ...]:
    """One level of headings; equal neighbours under the same heading are merged."""
    grouped = groupby(columns, key=lambda column: column[: level + 1])
    return tuple(Head(key[level] or "-", len(list(below))) for key, below in grouped)


def _place(place: Sequence[int], chips: Sequence[Chip], cells: Sequence[Cell]) -> tuple[Chip, ...]:
    apart = differences([cells[i] for i in place])
    return tuple(evolve(chips[i], apart=what) for i, what in zip(place, apart, strict=True))
