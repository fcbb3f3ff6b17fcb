"""`harness matrix`: runs the cells of a matrix and shows them as a table and a page."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import FILE, SectionCommand, json_option, settings_options
from harness.cli.written import short
from harness.errors import Interrupted, UserMistake
from harness.matrix import Matrix, read_matrix
from harness.matrix.reading import ChosenCells, choose
from harness.matrix.running import (
    CellRun,
    Sessions,
    expanded_by_index,
    open_sessions,
    pythons_of,
    run_cells,
    standings,
)
from harness.model import Verdict
from harness.model.text import listed, to_json
from harness.nightly.record import CellStatus, NightArchive
from harness.report.matrix import MatrixStanding, write_page
from harness.report.matrix_table import FAILS, UNKNOWN, WORKS, markdown_table
from harness.request.parsing import day
from harness.session import local_session
from harness.settings import OptionGroup, Settings
from harness.terminal import print_table, reporting
from harness.terminal.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.store import Store


_NOT_JUDGED = 3
_NIGHTLY = {CellStatus.GOOD: WORKS, CellStatus.FLAKY: UNKNOWN}
_ANSWERS = (Verdict.GOOD, Verdict.BAD)
_NAMED = 12

_EPILOG = """\b
Exit codes:
    0  every cell is good or bad: both are answers here
    3  a cell could not be judged; the output says why
  The others are those of every command. --list and --show end with 0.
"""


@click.command(cls=SectionCommand, epilog=_EPILOG)
@click.argument("file", type=FILE)
@click.option("-k", "words", metavar="WORDS", help='Only cells that match: "transformers_4_53 and not case_lora".')
@click.option(
    "--cover",
    type=click.Choice(["pairs"]),
    help="Run a subset that has every pair of values, and say what it leaves out.",
)
@click.option(
    "--as-of",
    metavar="DATE|today",
    help="The day for cells that name none: nothing uploaded later is installed. today is now.",
)
@click.option("--list", "as_list", is_flag=True, help="List the cells and run nothing.")
@click.option("--show", is_flag=True, help="Show what is in the results, and run nothing.")
@click.option(
    "--table",
    "as_table",
    is_flag=True,
    help="Print what works with what as a Markdown table; with --show also what only the last night knows.",
)
@json_option("JSON (schema 1)")
@settings_options(OptionGroup.LANES, OptionGroup.RUNS, OptionGroup.LIMITS)
def matrix(
    file: Path,
    words: str | None,
    cover: str | None,
    as_of: str | None,
    as_list: bool,
    show: bool,
    as_table: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Run the cells of the matrix FILE, then show them as a table and write a page with each cell's log.

    What is in the results does not run again, and of cells with the same lock only one runs. Cells for a Python that
    is not on this machine are skipped. The page is matrices/NAME.html in the results folder.

    \b
    harness matrix matrices/transformers.toml --lanes 2
    harness matrix matrices/transformers.toml -k "transformers_4_53_0 and not case_lora"
    harness matrix matrices/transformers.toml --show
    harness matrix matrices/transformers.toml --table > table.md
    """
    if as_table and (as_json or as_list):
        raise UserMistake("--table, --list and --json each print something else: give one of them")
    date = _day(as_of, show=show)
    read = read_matrix(file)
    if as_list:
        _print_list(choose(_with_versions(read, settings), words, cover), as_json=as_json)
        return
    console, stopped = Console(stderr=True), None
    with (
        reporting(console, quiet=as_json) as reporter,
        open_sessions(settings, pythons_of(read), reporter, as_of=date) as sessions,
    ):
        choice = choose(expanded_by_index(read, sessions.first), words, cover)
        for line in (*_left_out(choice), *(f"skipped cells: {reason}" for reason in sessions.missing.values())):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        runs: tuple[CellRun, ...] = ()
        try:
            runs = () if show else _run(sessions, choice)
        except Interrupted as error:
            stopped = error
        rows = standings(choice.matrix.cells, sessions, runs)
    page, record = write_page(sessions.store, MatrixStanding(read.name, rows, _typed(), choice.left_out))
    if as_json:
        click.echo(record, nl=False)
    elif as_table:
        night = _last_night(sessions.store, read.name) if show else {}
        click.echo(markdown_table(rows, choice.names, _typed(), night), nl=False)
        click.echo(f"  page: {short(page)}", err=True)
    else:
        print_table(Console(), rows, choice.names)
        click.echo(f"  page: {short(page)}")
    if stopped is not None:
        raise stopped
    meant = [standing for standing in rows if standing.cell.name in choice.names]
    sys.exit(0 if show or all(standing.verdict in _ANSWERS for standing in meant) else _NOT_JUDGED)


def _last_night(store: Store, name: str) -> dict[str, str]:
    """What the nights of a matrix say of each cell, as words of the Markdown table."""
    found: dict[str, str] = {}
    for night in NightArchive(store).all():
        if night.matrix == name:
            judged = (cell for cell in night.cells if cell.standing.is_judged)
            found |= {cell.name: _NIGHTLY.get(cell.standing, FAILS) for cell in judged}
    return found


def _run(sessions: Sessions, choice: ChosenCells) -> tuple[CellRun, ...]:
    cells = tuple(filter(sessions.can_run, choice.cells))
    with sessions.lanes(cells) as lanes:
        return run_cells(cells, sessions, lanes)


def _with_versions(read: Matrix, settings: Settings) -> Matrix:
    """The matrix with versions from the index, which is queried only if needed."""
    if not read.needs_index:
        return read
    return expanded_by_index(read, local_session(settings))


def _print_list(choice: ChosenCells, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(choice.as_json()))
        return
    for cell in choice.cells:
        click.echo(cell.label)
    for line in _left_out(choice):
        click.echo(line, err=True)


def _left_out(choice: ChosenCells) -> Iterator[str]:
    """Yield a line for what does not run, with the reason."""
    for row in choice.matrix.left_out:
        yield f"left out: {row.project} {row.version} ({row.reason})"
    if (covering := choice.covering) is not None:
        named = listed((cell.name for cell in covering.left_out), _NAMED) or "none"
        yield (
            f"{len(covering.cells)} of {len(covering.cells) + len(covering.left_out)} cells have all "
            f"{covering.pairs} pairs of values; left out: {named}"
        )


def _day(as_of: str | None, *, show: bool) -> datetime | None:
    if as_of is None:
        return None
    if as_of == "today":
        if show:
            raise UserMistake("--show can't answer for today, which is a new question each time", hint="give a date")
        return datetime.now(UTC).replace(second=0, microsecond=0)
    return day(as_of, "--as-of", "a date such as 2025-06-27, or today")


def _typed() -> str:
    """The command line, to show on the page."""
    words = click.get_current_context().meta["typed"]
    return shlex.join(["harness", "matrix", *(word for word in words if word not in ("--show", "--json"))])
