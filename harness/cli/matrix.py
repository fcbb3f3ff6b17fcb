"""`harness matrix`: the cells of a matrix, run on lanes, as a table and a page."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from harness.cli.benches import Benches, Places, open_benches, open_places, pythons_of
from harness.cli.lane_options import lane_options
from harness.cli.matrix_page import write_page
from harness.cli.repro_options import short
from harness.cli.wiring import open_workshop, resource_options, results_option
from harness.errors import Interrupted, UserMistake
from harness.matrix import Cell, read_matrix
from harness.matrix.choice import Choice, choose
from harness.matrix.expansion import expanded_by_index
from harness.matrix.running import CellRun, Cells
from harness.matrix.standing import Standing, known_runs, standings
from harness.model import Verdict
from harness.terminal import print_table, reporting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.events import Reporter

_NOT_JUDGED = 3
_ANSWERS = (Verdict.GOOD, Verdict.BAD)
_NAMED = 12

_EPILOG = """\b
Exit codes:
    0  every cell that was to run is good or bad: both are answers here
    3  a cell could not be judged; its reason is told
  The others are those of every command. --list and --show end with 0.
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-k", "words", metavar="WORDS", help='Only cells of these words: "transformers_4_53 and not case_lora".')
@lane_options
@click.option(
    "--cover",
    type=click.Choice(["pairs"]),
    help="Run a subset in which every pair of values occurs, and say what it leaves out.",
)
@click.option(
    "--as-of",
    metavar="DATE|today",
    help="The day for cells that name none: what was uploaded later is not installed. today is now.",
)
@click.option("--list", "as_list", is_flag=True, help="List the cells and run nothing.")
@click.option("--show", is_flag=True, help="Show and write what the store knows, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) on stdout, and nothing else there.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="Let repros see this environment variable.")
@click.option("--capability", default="8.6", show_default=True, help="What the stand-in for CUDA pretends to be.")
@click.option("--torch-backend", metavar="NAME", help="uv's choice of PyTorch builds: auto, cpu, cu128, ...")
@resource_options
@results_option
def matrix(
    file: Path,
    words: str | None,
    cover: str | None,
    lanes: int | None,
    scheduler: str | None,
    as_of: str | None,
    as_list: bool,
    show: bool,
    as_json: bool,
    pass_env: tuple[str, ...],
    capability: str,
    torch_backend: str | None,
    gpu_wait: float,
    max_disk: int | None,
    results_folder: Path,
) -> None:
    """Run the cells of the matrix FILE, then show them as a table and write a page with each cell's log.

    What the store knows is not run again, and of cells that come to the same lock one is run. Cells of a Python that
    is not on this machine are skipped, with that reason. The page is matrices/NAME.html in the results folder.

    \b
    harness matrix matrices/transformers.toml --lanes 2
    harness matrix matrices/transformers.toml -k "transformers_4_53_0 and not case_lora"
    harness matrix matrices/transformers.toml --show
    """
    day = _day(as_of, show=show)
    read = read_matrix(file)

    if as_list:
        if read.needs_index:
            workshop = open_workshop(results_folder)
            read = expanded_by_index(read, workshop.index, workshop.interpreter)
        _print_list(choose(read, words, cover), as_json=as_json)
        return
    console = Console(stderr=True)
    runs: tuple[CellRun, ...] = ()
    stopped: Interrupted | None = None
    with reporting(console, quiet=as_json) as reporter:
        benches = open_benches(
            results_folder,
            pythons_of(read),
            as_of=day,
            pass_env=pass_env,
            capability=capability,
            torch_backend=torch_backend,
            gpu_wait=gpu_wait,
            max_disk=max_disk,
            reporter=reporter,
        )
        choice = choose(benches.expanded(read), words, cover)
        places = click.get_current_context().with_resource(open_places(benches, lanes, scheduler, reporter))
        benches = places.moved(benches)
        for line in (*_left_out(choice), *(f"skipped cells: {reason}" for reason in benches.missing.values())):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if not show:
            try:
                runs = _run(benches, choice, places, reporter)
            except Interrupted as error:
                stopped = error
    stood = _standings(benches, choice.matrix.cells, runs)
    meant = [standing for standing in stood if standing.cell.name in choice.names]
    page, record = write_page(
        benches.workshop.store, read.name, stood, command=_typed(), pass_env=pass_env, left_out=choice.left_out
    )
    if as_json:
        click.echo(record, nl=False)
    else:
        print_table(Console(), stood, choice.names)
        click.echo(f"  page: {short(page)}")
    if stopped is not None:
        raise stopped
    sys.exit(0 if show or all(standing.verdict in _ANSWERS for standing in meant) else _NOT_JUDGED)


def _run(benches: Benches, choice: Choice, places: Places, reporter: Reporter) -> tuple[CellRun, ...]:
    cells = tuple(cell for cell in choice.cells if cell.python not in benches.missing)
    with contextlib.closing(places.open_lanes(map(benches.bench.probe, cells))) as pool:
        return Cells(cells, benches.bench, benches.probers, pool, reporter, benches.workshop.store).run()


def _standings(benches: Benches, cells: Sequence[Cell], runs: tuple[CellRun, ...]) -> tuple[Standing, ...]:
    """Every cell: what was run now, else what the store has of it."""
    done = {run.cell.name for run in runs}
    rest = [cell for cell in cells if cell.name not in done and cell.python not in benches.missing]
    known = known_runs(rest, benches.bench, benches.probers, benches.workshop.store)
    hindered = {cell.name: benches.missing[cell.python] for cell in cells if cell.python in benches.missing}
    return standings(cells, (*runs, *known), hindered)


def _print_list(choice: Choice, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(choice.as_json(), indent=1))
        return
    for cell in choice.cells:
        click.echo(cell.name)
    for line in _left_out(choice):
        click.echo(line, err=True)


def _left_out(choice: Choice) -> Iterator[str]:
    """What does not run, and why."""
    for row in choice.matrix.left_out:
        yield f"left out: {row.project} {row.version} ({row.reason})"
    if (covering := choice.covering) is not None:
        named = [cell.name for cell in covering.left_out]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        yield (
            f"{len(covering.cells)} of {len(covering.cells) + len(named)} cells have {covering.covered} of "
            f"{covering.pairs} pairs of values; left out: {', '.join(named[:_NAMED]) or 'none'}{more}"
        )


def _day(as_of: str | None, *, show: bool) -> datetime | None:
    if as_of is None:
        return None
    if as_of == "today":
        if show:
            raise UserMistake("--show has no answer as of today, which is a new question each time", hint="give a date")
        return datetime.now(UTC).replace(second=0, microsecond=0)
    try:
        return datetime.fromisoformat(as_of).replace(tzinfo=UTC)
    except ValueError as error:
        raise UserMistake(f"--as-of takes a date such as 2025-06-27, or today, not {as_of!r}") from error


def _typed() -> str:
    """What was typed, for whoever reads the page."""
    context = click.get_current_context()
    given = [os.fspath(context.params["file"])]
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if isinstance(option, click.Option) and source is click.core.ParameterSource.COMMANDLINE:
            value = context.params[option.name or ""]
            if option.name in ("show", "as_json", "results_folder"):
                continue
            values = value if isinstance(value, tuple) else [value]
            given += [word for one in values for word in (option.opts[0], *(() if option.is_flag else (str(one),)))]
    return shlex.join(["harness", "matrix", *given])
