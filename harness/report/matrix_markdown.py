"""A matrix as a Markdown table of what works with what, for a README."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.model import Verdict
from harness.model.text import listed
from harness.report.matrix_table import axis_name, column_name, differences, parts, pivot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from harness.matrix.running import Standing
    from harness.report.matrix_table import Pivot

WORKS, FAILS, UNKNOWN, NOT_RUN = "works", "**fails**", "?", ""
_OF = {Verdict.GOOD: WORKS, Verdict.BAD: FAILS, Verdict.SKIP: UNKNOWN, None: NOT_RUN}


def markdown_table(
    standings: Sequence[Standing], meant: Collection[str], command: str, elsewhere: Mapping[str, str] | None = None
) -> str:
    """Return a table for each part of a matrix, and a line on where it comes from.

    `meant` are the names of the cells to show; `command` made it. `elsewhere` maps names of cells to what is known of
    them from another place, such as the last night; it counts where a cell has no verdict of its own.
    """
    words = [_word(standing, elsewhere or {}) for standing in standings]
    shown = [i for i, standing in enumerate(standings) if standing.cell.name in meant]
    lines: list[str] = []
    for title, laid in parts(pivot([standing.cell for standing in standings]).of(shown)):
        lines += [f"**{_plain(title)}**", ""] if title else []
        lines += [*_table(laid, standings, words), ""]
    if any(words[i] == UNKNOWN for i in shown):
        lines += ["?: it could not be judged.", ""]
    lines.append(_source([standings[i] for i in shown], command))
    return "\n".join(lines) + "\n"


def _word(standing: Standing, elsewhere: Mapping[str, str]) -> str:
    own = _OF[standing.verdict]
    return elsewhere.get(standing.cell.name, own) if own in (NOT_RUN, UNKNOWN) else own


def _table(laid: Pivot, standings: Sequence[Standing], words: Sequence[str]) -> Iterator[str]:
    heads = [_plain(column_name(laid, column)) or "result" for column in laid.columns]
    yield _row(_plain(axis_name(laid.down)), heads)
    yield "|---" * (len(heads) + 1) + "|"
    for row in laid.rows:
        places = [laid.places.get((row, column), ()) for column in laid.columns]
        yield _row(_plain(row), [_place(place, standings, words) for place in places])


def _row(head: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([head, *cells])} |"


def _place(place: Sequence[int], standings: Sequence[Standing], words: Sequence[str]) -> str:
    apart = differences([standings[i].cell for i in place])
    told = [f"{words[i]} ({_plain(what)})" if what else words[i] for i, what in zip(place, apart, strict=True)]
    alike = {words[i] for i in place}
    return alike.pop() if len(alike) == 1 else ", ".join(told)


def _source(standings: Sequence[Standing], command: str) -> str:
    """Return a line with the day, the Pythons and the devices of the runs, and the command."""
    runs = [standing.run.observation for standing in standings if standing.run is not None]
    days = sorted(run.started[:10] for run in runs if run.started)
    pythons = sorted({run.lock.minor for run in runs if run.lock is not None})
    devices = sorted({run.device.value for run in runs})
    told = [f"Run until {days[-1]}"] if days else ["Not run yet"]
    told += [f"with Python {listed(pythons)} on {listed(devices)}"] if pythons else []
    return f"{' '.join(told)}: `{command}`"


def _plain(text: str) -> str:
    """Return a text without what Markdown takes for markup in a cell."""
    return re.sub(r"([|\\`*_<])", r"\\\1", text)
