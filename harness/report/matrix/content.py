"""The content of a matrix's page, as one frozen value, which the template renders without further logic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from harness.report.matrix.charts import Plots


@frozen
class Head:
    """One heading with the number of columns below it."""

    text: str
    span: int = 1


@frozen
class Chip:
    """A cell in a heat map.

    `id` links to its panel, `state` selects its colour; `apart` distinguishes it from others at the same place.
    """

    id: str
    state: str
    word: str
    title: str
    apart: str = ""


@frozen
class HeatRow:
    """One value of the vertical axis, and the cells in each column."""

    text: str
    places: tuple[tuple[Chip, ...], ...]


@frozen
class HeatMap:
    """One table of cells; `heads` are its levels of headings, each an axis with its values.

    Without a horizontal axis there are no headings, and the rows may wrap like words.
    """

    title: str
    down: str
    heads: tuple[tuple[str, tuple[Head, ...]], ...]
    rows: tuple[HeatRow, ...]


@frozen
class Panel:
    """The details of one cell; `label` distinguishes it from the others.

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
    """The number of cells with a state."""

    state: str
    word: str
    number: int


@frozen
class MatrixContent:
    """The whole page. `readings` describe each column, `plots` show its metrics, `record` is the page as JSON."""

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
