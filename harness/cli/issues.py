"""`harness issues` keeps one issue for each break in this repository; `harness upstream` prints one for others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import settings_options
from harness.model.text import to_json
from harness.nightly.record import NightArchive, Past
from harness.nightly.tracker import Gh, Wanted, actions, issues_of, this_repository, upstream_issue
from harness.redact import redacted
from harness.report.answer import page_of, repositories_of
from harness.report.archive import Archive
from harness.report.content import render_issue
from harness.report.privacy import private_of
from harness.settings import Settings
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNKNOWN_TARGET = 1


@click.command()
@click.option("--repository", metavar="OWNER/NAME", help="This repository [default: the workflow's or git remote's].")
@click.option("--dry-run", is_flag=True, help="Print the gh commands and change nothing.")
@settings_options()
def issues(repository: str | None, dry_run: bool, settings: Settings) -> None:
    """Open, update and close one issue in this repository for each break that the nights found.

    Needs the gh executable, logged in or with GH_TOKEN. Running it again changes nothing. It refuses any repository
    but this one.

    \b
    harness issues --dry-run
    harness issues --repository OWNER/NAME
    """
    store = Store.opened(settings.results)
    breaks = redacted(Past.of(NightArchive(store).all(), "").breaks, private_of(store))
    gh = Gh(this_repository(repository, os.environ, Path.cwd()))
    update_tracker(gh, issues_of(breaks.values(), {name: _report(store, name) for name in breaks}), dry_run=dry_run)


def update_tracker(gh: Gh, wanted: Iterable[Wanted], *, dry_run: bool) -> None:
    """Make the issues of this repository match, and print what was done. Raises `UserMistake` and `NoNetwork`."""
    needed = actions(wanted, gh.issues())
    for action in needed:
        if not dry_run:
            gh.do(action)
        click.echo(gh.line(action) if dry_run else f"{action.kind.value}: {action.title}")
    if not needed:
        click.echo(f"nothing to change in the issues of {gh.repository}")


def _report(store: Store, name: str) -> str:
    try:
        return (store.root / "reports" / f"{name}.md").read_text(encoding="utf-8")
    except OSError:
        return ""


@click.command()
@click.argument("report", required=False)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@settings_options()
def upstream(report: str | None, style: str, settings: Settings) -> None:
    """Print an issue for the culprit's maintainers: repository, title and body. You send it; the harness never does.

    REPORT is the start of an answer's id [default: the newest]. The repository is the one that the culprit's own
    metadata names. Exit code 1: it names none.

    \b
    harness upstream
    harness upstream 8d38 --format json
    """
    store = Store.opened(settings.results)
    kept = Archive(store).get(report)
    issue = upstream_issue(kept, repositories_of(kept), render_issue(page_of(store, kept)))
    command = issue.command("body.md")
    if style == "json":
        told = {"schema": 1, "package": issue.package, "repository": issue.repository or None, "title": issue.title}
        click.echo(to_json({**told, "body": issue.body, "command": command or None}))
    else:
        unknown = f"unknown: the metadata of {issue.package} names no repository on GitHub, or is no longer here"
        click.echo(f"repository: {issue.repository or unknown}")
        click.echo(f"title: {issue.title}")
        if command:
            click.echo(f"to send it, save the text below as body.md and run: {command}")
        click.echo(f"\n{issue.body}", nl=False)
    sys.exit(0 if issue.repository else _UNKNOWN_TARGET)
