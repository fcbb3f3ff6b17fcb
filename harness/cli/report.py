"""`harness report`: prints a stored answer as Markdown, HTML or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import settings_options
from harness.errors import NoSpace
from harness.report import RENDERERS, Archive
from harness.report.answer import content_of
from harness.settings import Settings
from harness.store import Store


@click.command()
@click.argument("id", required=False)
@click.option(
    "--format",
    "style",
    type=click.Choice(list(RENDERERS)),
    default="markdown",
    show_default=True,
    help="markdown for an issue, html to look at, json for programs.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write there instead of to stdout.")
@settings_options()
def report(id: str | None, style: str, output: Path | None, settings: Settings) -> None:  # noqa: A002
    """Write the report of an answer: the newest, or the one whose ID begins so.

    \b
    harness report
    harness report --format html --output report.html
    """
    store = Store.opened(settings.results)
    text = RENDERERS[style](content_of(store, Archive(store).get(id)))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NoSpace(f"can't write {output}: {error.strerror}") from error
