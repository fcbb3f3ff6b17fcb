"""Prints what is kept: `harness results` all observations as a table, `harness report` an answer."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve
from rich.table import Table
from rich.text import Text

from harness.bisection.by_culprit import answers_by_culprit
from harness.cli.options import complete_answers, output_option, settings_options
from harness.cli.output import print_or_write
from harness.errors import UserMistake
from harness.model.text import to_json
from harness.report.answer import page_of, repositories_of
from harness.report.archive import Archive
from harness.report.page import RENDERERS
from harness.settings import Settings
from harness.store import Store
from harness.terminal.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.bisection.answer import Answer

_SHOWN = ("key", "started", "repro", "requirements", "device", "outcome", "detail", "duration_s")
_ANY_WIDTH = 10_000  # for files and pipes, so that each row is one line


@click.command()
@click.option("--format", "style", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@output_option("Write there instead of to stdout.")
@settings_options()
def results(style: str, file: Path | None, settings: Settings) -> None:
    """Show every observation that is kept: a row each; csv and json have all columns.

    \b
    harness results
    harness results --format csv --output runs.csv
    """
    rows = Store.opened(settings.results).rows()
    if not rows:
        raise UserMistake(f"no observations in {settings.results}", hint="harness bisect and harness probe make them")
    as_json = f"{to_json(rows)}\n" if style == "json" else ""
    print_or_write(as_json or (_csv(rows) if style == "csv" else _table(rows, file)), file)


@click.command()
@click.argument("id", required=False, shell_complete=complete_answers)
@click.option(
    "--format",
    "style",
    type=click.Choice(list(RENDERERS)),
    default="markdown",
    show_default=True,
    help="markdown for an issue, html to look at, json for programs.",
)
@click.option("--package", metavar="NAME", help="Only what is about this culprit, for its maintainers.")
@output_option("Write there instead of to stdout.")
@settings_options()
def report(id: str | None, style: str, package: str | None, file: Path | None, settings: Settings) -> None:  # noqa: A002
    """Write the report of an answer: the newest, or the one whose ID begins so.

    Names the repository of each culprit too, if its metadata has one: you send the report, the harness never does.

    \b
    harness report
    harness report --package httpx
    harness report --format html --output report.html
    """
    store = Store.opened(settings.results)
    stored = Archive(store).get(id)
    stored = stored.about_package(package) if package is not None else stored
    print_or_write(RENDERERS[style](page_of(store, stored)), file)
    for part in answers_by_culprit(stored.answer):
        recipient = recipient_package(part)
        if repository := repositories_of(evolve(stored, answer=part)).get(recipient):
            click.echo(f"  the repository of {recipient}: {repository}", err=True)


def recipient_package(answer: Answer) -> str:
    """Return the package that the report of an answer is for: the subject if it is a culprit, else the culprit."""
    names = [change.name for change in answer.findings[-1].packages] if answer.findings else []
    return answer.subject if answer.subject in names or not names else names[0]


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows with the columns that any of them has."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(column for row in rows for column in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _table(rows: Iterable[Mapping[str, Any]], file: Path | None) -> str:
    """The rows as lines of text: as wide as the terminal, or a line each in a file or a pipe."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _SHOWN:
        table.add_column(column.removesuffix("_s"), no_wrap=column in ("key", "outcome"))
    for row in rows:
        table.add_row(*(Text("" if row[column] is None else str(row[column])) for column in _SHOWN))
    is_shown = file is None and sys.stdout.isatty()
    console = Console(width=None if is_shown else _ANY_WIDTH, file=io.StringIO(), force_terminal=is_shown)
    with console.capture() as text:
        console.print(table)
    return text.get()
