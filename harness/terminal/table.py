"""Prints the verdicts of a matrix as a table of coloured words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness.report.matrix_table import axis_name, differences, parts, pivot
from harness.terminal.console import STYLE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.matrix.running import Standing
    from harness.report.matrix_table import Choice, Pivot
    from harness.terminal.console import Console

_NOT_RUN = "-"
_WIDEST = 10_000


def print_table(console: Console, standings: Sequence[Standing], meant: Collection[str] | None = None) -> None:
    """Print a table: the longest axis is vertical, the other varying axes horizontal; "-" is a cell that never ran.

    `meant` are the names of the cells to show (None: all).
    """
    shown = [i for i, standing in enumerate(standings) if meant is None or standing.cell.name in meant]
    for title, laid in parts(pivot([standing.cell for standing in standings]).of(shown)):
        if title:
            console.print(Text(f"\n{title}", style="bold"))
        table = _table(laid, standings)
        if not console.is_terminal:  # a log has no width, so nothing needs to be cut
            options = console.options.update(max_width=_WIDEST)
            console.width = max(console.width, console.measure(table, options=options).maximum)
        console.print(table)


def _table(laid: Pivot, standings: Sequence[Standing]) -> Table:
    """A table with a line of headings for each horizontal axis; for a single one, the headings are "axis=value"."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = [axis_name(axis) for axis in laid.across] if len(laid.across) > 1 else []
    table.add_column(Text("\n".join([*names, axis_name(laid.down)])), no_wrap=True)
    for column in laid.columns:
        # The last line of headings has the name of the vertical axis.
        told = [*(value or _NOT_RUN for value in column), " "] if names else _headings(laid, column)
        table.add_column(Text("\n".join(told)))
    for row in laid.rows:
        places = [[standings[i] for i in laid.places.get((row, column), ())] for column in laid.columns]
        table.add_row(Text(row or _NOT_RUN), *map(_place, places))
    return table


def _headings(laid: Pivot, column: Choice) -> list[str]:
    told = [f"{axis_name(axis)}={value}" for axis, value in zip(laid.across, column, strict=True) if value]
    return told or ["verdict"]


def _place(standings: Sequence[Standing]) -> Text:
    """The verdicts at one place; several are distinguished by how they differ."""
    text = Text()
    apart = differences([standing.cell for standing in standings])
    for position, (standing, what) in enumerate(zip(standings, apart, strict=True)):
        text.append(", " if position else "")
        verdict = standing.verdict
        text.append(verdict.word if verdict else _NOT_RUN, style=STYLE[verdict] if verdict else "dim")
        text.append(f" ({what})" if what else "", style="dim")
    return text
