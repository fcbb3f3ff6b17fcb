"""`harness history`: every window of releases in which a repro was broken."""

from __future__ import annotations

import sys
from typing import Any

import click

from harness.api import reported_history
from harness.bisection.history_scan import HistoryRange
from harness.cli.options import (
    SectionCommand,
    end_option,
    option,
    repro_options,
    subject_argument,
)
from harness.cli.output import Output, output_options
from harness.cli.search_options import as_request, question_settings, scan_options
from harness.question.request import Request
from harness.settings import Settings
from harness.terminal import print_history
from harness.terminal.console import Console, short_path


@click.command(cls=SectionCommand)
@subject_argument()
@repro_options
@end_option("--from", "since", metavar="V", help="The oldest release [default: the repro's older bound, else all].")
@end_option("--to", "until", metavar="V", help="The newest release [default: the newest there is].")
@scan_options
@option(
    "Search",
    "--max-gap",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run at least one of N neighbouring releases; 1 runs all [default: under a third are run].",
)
@output_options("the history as JSON")
@question_settings
@as_request
def history(request: Request, output: Output, settings: Settings, **wanted: Any) -> None:
    """Show every window of releases of SUBJECT in which a repro was broken.

    Scans coarsely, then bisects each change between good and bad. What is in the results folder does not run again.
    The answer names what did not run: a window narrower than the gaps can hide there.

    Exit codes: 0 found windows, 1 no release that ran is broken, 3 skipped releases hide an edge, or none could be
    judged.

    \b
    harness history transformers
    harness history transformers --from 4.50.0 --to 5.10.4
    harness history transformers --max-gap 1 --lanes 4
    """
    with output.reporting() as reporter:
        result, reports = reported_history(request, HistoryRange(**wanted), settings, reporter)
    page = next((path for path in reports if path.suffix == ".html"), None)
    output.answer(result.as_json(), result.status.exit_code, report=page)
    if output.is_for_people:
        print_history(Console(soft_wrap=True), result, str(settings.results))
        for path in reports:
            click.echo(f"  report: {short_path(path)}")
    sys.exit(result.status.exit_code)
