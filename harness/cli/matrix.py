"""`harness matrix`: runs the cells of a matrix and shows them as a table and a page."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.arguments import OptionGroup
from harness.cli.options import FILE, SectionCommand, settings_options
from harness.cli.output import Output, output_options
from harness.errors import Interrupted, UserMistake
from harness.events import Note
from harness.matrix import Cell, Matrix, read_matrix
from harness.matrix.page import MatrixResult, write_page
from harness.matrix.reading import ChosenCells, choose
from harness.matrix.running import (
    CellRun,
    Sessions,
    expanded_by_index,
    open_sessions,
    pythons_of,
    results_of,
    run_cells,
)
from harness.matrix.table import markdown_table
from harness.model import Verdict
from harness.question.parsing import day
from harness.session import local_session
from harness.settings import Settings
from harness.terminal import print_table
from harness.terminal.console import Console, short_path

if TYPE_CHECKING:
    from collections.abc import Iterator


_NOT_JUDGED = 3
_ANSWERS = (Verdict.GOOD, Verdict.BAD)

_EPILOG = """\b
Exit codes:
    0  every cell is good or bad: both are answers here
    3  a cell could not be judged; the output says why
  The others are those of every command. --list and --show end with 0.
"""


@click.command(cls=SectionCommand, epilog=_EPILOG)
@click.argument("file", type=FILE)
@click.option(
    "--only",
    multiple=True,
    metavar="AXIS=VALUE",
    help="Only cells with this value, or one of several: case=lora,full. Given several times, all must hold.",
)
@click.option("--as-of", metavar="DATE", help="The day for cells that name none: nothing uploaded later is installed.")
@click.option("--list", "as_list", is_flag=True, help="List the cells and run nothing.")
@click.option("--show", is_flag=True, help="Show what is in the results, and run nothing.")
@click.option(
    "--table",
    "as_table",
    is_flag=True,
    help="Print what works with what as a Markdown table.",
)
@output_options("JSON (schema 1)")
@settings_options(OptionGroup.LANES, OptionGroup.RUNS, OptionGroup.LIMITS)
def matrix(
    file: Path,
    only: tuple[str, ...],
    as_of: str | None,
    as_list: bool,
    show: bool,
    as_table: bool,
    output: Output,
    settings: Settings,
) -> None:
    """Run the cells of the matrix FILE, then show them as a table and write a page with each cell's log.

    What is in the results does not run again, and of cells with the same lock only one runs. Cells for a Python that
    is not on this machine are skipped. The page is matrices/NAME.html in the results folder.

    \b
    harness matrix matrices/transformers.toml --lanes 2
    harness matrix matrices/transformers.toml --only transformers=4.52.4,4.53.0 --only case=lora
    harness matrix matrices/transformers.toml --show
    harness matrix matrices/transformers.toml --table > table.md
    """
    if as_table and (as_list or not output.is_for_people):
        raise UserMistake("--table, --list and --json each print something else: give one of them")
    date = day(as_of, "--as-of") if as_of is not None else None
    read = read_matrix(file)
    if as_list:
        choice = choose(_with_versions(read, settings), only)
        output.answer(choice.as_json(), 0)
        if output.is_for_people:
            _print_list(choice)
        return
    stopped = None
    with (
        output.reporting() as reporter,
        open_sessions(settings, pythons_of(read), reporter, as_of=date) as sessions,
    ):
        choice = choose(expanded_by_index(read, sessions.first), only)
        cells = () if show else sessions.runnable(choice.cells)
        reasons = dict.fromkeys(sessions.blocked(choice.cells).values())
        for line in (*_left_out(choice), *(f"skipped cells: {reason}" for reason in reasons)):
            if output.lines is not None:
                output.lines.report(Note(line))
            else:
                Console(stderr=True).print(line, highlight=False, soft_wrap=True)
        runs: tuple[CellRun, ...] = ()
        try:
            runs = _run(sessions, cells) if cells else ()
        except Interrupted as error:
            stopped = error
        rows = results_of(choice.matrix.cells, sessions, runs)
    page, record = write_page(sessions.store, MatrixResult(read.name, rows, _typed(), choice.left_out))
    meant = [standing for standing in rows if standing.cell.name in choice.names]
    code = 0 if show or all(standing.verdict in _ANSWERS for standing in meant) else _NOT_JUDGED
    if not output.is_for_people:
        if stopped is not None:
            raise stopped
        output.answer(json.loads(record), code, report=page)
    elif as_table:
        click.echo(markdown_table(rows, choice.names, _typed()), nl=False)
        click.echo(f"  page: {short_path(page)}", err=True)
    else:
        print_table(Console(), rows, choice.names)
        click.echo(f"  page: {short_path(page)}")
    if stopped is not None:
        raise stopped
    sys.exit(code)


def _run(sessions: Sessions, cells: tuple[Cell, ...]) -> tuple[CellRun, ...]:
    with sessions.lanes(cells) as lanes:
        return run_cells(cells, sessions, lanes)


def _with_versions(read: Matrix, settings: Settings) -> Matrix:
    """The matrix with versions from the index, which is queried only if needed."""
    if not read.needs_index:
        return read
    return expanded_by_index(read, local_session(settings))


def _print_list(choice: ChosenCells) -> None:
    for cell in choice.cells:
        click.echo(cell.name)
    for line in _left_out(choice):
        click.echo(line, err=True)


def _left_out(choice: ChosenCells) -> Iterator[str]:
    """Yield a line for what does not run, with the reason."""
    for row in choice.matrix.left_out:
        yield f"left out: {row.project} {row.version} ({row.reason})"


def _typed() -> str:
    """The command line, to show on the page."""
    words = click.get_current_context().meta["typed"]
    return shlex.join(
        ["harness", "matrix", *(word for word in words if word not in ("--show", "--json", "--json-lines"))]
    )
