"""What the page of a matrix says, as one frozen value: the template writes it down and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from harness.report.matrix.charts import Plots


@frozen
class Head:
    """One heading above so many columns."""

    text: str
    span: int = 1


@frozen
class Chip:
    """A cell in a heat map: `id` leads to its panel, `state` to its colour; `apart` tells it from others there."""

    id: str
    state: str
    word: str
    title: str
    apart: str = ""


@frozen
class HeatRow:
    """One value of the axis that goes down, and the cells at each column."""

    text: str
    places: tuple[tuple[Chip, ...], ...]


@frozen
class HeatMap:
    """One table of cells; `heads` are its levels of headings, each an axis with the values across.

    Where nothing varies across there are no headings, and the rows may flow like words.
    """

    title: str
    down: str
    heads: tuple[tuple[str, tuple[Head, ...]], ...]
    rows: tuple[HeatRow, ...]


@frozen
class Panel:
    """All that is told of one cell; `label` is what tells it from the others.

    `older` and `newer` are the ids of its neighbours in the heat map, "" for none.
    """

    id: str
    name: str
    label: str
    state: str
    word: str
    reason: str
    facts: tuple[tuple[str, str], ...]
    command: str
    again: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    changes_title: str = ""
    changes: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    traceback: str = ""
    log: str = ""
    older: str = ""
    newer: str = ""
    took: str = ""


@frozen
class Count:
    """How many cells have a state."""

    state: str
    word: str
    number: int


@frozen
class MatrixContent:
    """The whole page. `readings` say each column in words, `plots` draw its numbers, `record` is the page's JSON."""

    name: str
    about: str
    sentence: str
    counts: tuple[Count, ...]
    readings: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    maps: tuple[HeatMap, ...]
    panels: tuple[Panel, ...]
    left_out: tuple[tuple[str, str], ...]
    withheld: str
    command: str
    footer: str
    record: dict[str, Any]
    plots: tuple[Plots, ...] = ()
