"""`harness watch` runs a project's tests with the newest packages; `harness watch-issue` maintains its issue."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.asking.ask import inquiry_of
from harness.asking.kinds import Kind
from harness.atomic import write_whole
from harness.cli.issues import update_tracker
from harness.cli.options import SectionCommand, settings_options
from harness.cli.search_options import project_options
from harness.errors import NoSpace, UserMistake
from harness.nightly.tracker import Gh, this_repository
from harness.nightly.watch import NightStatus, ProjectNight, ProjectWatch, issue_of, report_of
from harness.redact import redacted
from harness.report.privacy import private_of
from harness.request.commands import ChosenProject
from harness.request.ends import End, EndKind, Ends, parse_end
from harness.request.question import Question
from harness.session import open_session
from harness.settings import Group, Settings
from harness.terminal import reporting
from harness.terminal.console import Console

if TYPE_CHECKING:
    from typing import Any

_LABEL = "harness-watch"
_NIGHT, _REPORT, _CONSTRAINTS = "night.json", "report.md", "constraints.txt"

_state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".harness-watch"),
    show_default=True,
    metavar="FOLDER",
    help="Folder for what is kept between nights: the last packages with which the tests passed, and the report.",
)


@click.command(cls=SectionCommand)
@click.option("--run", required=True, metavar="COMMAND", help="The tests: pytest, or any other command.")
@_state_option
@click.option("--name", default="Tests with the newest packages", show_default=True, help="Title of its issue.")
@click.option("--day", default="today", show_default=True, metavar="DAY", help="Take the newest packages of this day.")
@project_options
@settings_options(Group.LANES, Group.QUESTION, Group.RUNS, Group.LIMITS)
def watch(
    run: str,
    state: Path,
    name: str,
    day: str,
    project: ChosenProject,
    constraints: Path | None,
    settings: Settings,
) -> None:
    """Run a project's tests with the newest packages. When an upgrade broke them, find which, from the last green ones.

    While nothing fails that passed before, the packages are kept in the state folder as the last green ones. Exit
    codes: 0 nothing new broke, 1 an upgrade broke tests, 3 not sure: the tests fail with the very packages that they
    passed with, or no packages are known with which they pass.

    \b
    harness watch --run pytest
    harness watch --run "python -m unittest" --project . --state ~/nights
    """
    today = _day(day)
    with reporting(Console(stderr=True), quiet=False) as reporter, open_session(settings, reporter) as session:
        question = inquiry_of(session, Question(run=run, project=project), Kind.WORLDS, Ends(None, today))
        night = ProjectWatch(session, question, today, state.absolute(), name, run).run()
        night = redacted(night, private_of(session.store, pass_env=settings.pass_env))
    _keep(night, state, constraints)
    click.echo(night.sentence)
    if night.constraints:
        click.echo(f"Workaround: {' '.join(night.constraints)}")
    sys.exit(night.status.exit_code)


def _keep(night: ProjectNight, state: Path, constraints: Path | None) -> None:
    """Write the night, its report and its constraints; a file without content is removed. Raises `NoSpace`."""
    texts = {
        state / _NIGHT: json.dumps(night.as_json(), indent=1) + "\n",
        state / _REPORT: report_of(night) if night.status is NightStatus.BROKEN else "",
        constraints or state / _CONSTRAINTS: "".join(f"{one}\n" for one in night.constraints),
    }
    try:
        for path, text in texts.items():
            if text:
                write_whole(path, text)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise NoSpace(f"can't write to {state}: {error.strerror}") from error


@click.command("watch-issue")
@_state_option
@click.option("--repository", metavar="OWNER/NAME", help="This repository [default: the workflow's, or git remote's].")
@click.option("--dry-run", is_flag=True, help="Print the gh commands and change nothing.")
def watch_issue(state: Path, repository: str | None, dry_run: bool) -> None:
    """Open or update the one issue on what `harness watch` found, and close it when the tests pass again.

    Needs the gh executable, logged in or with GH_TOKEN. It refuses any repository but this one.

    \b
    harness watch-issue --dry-run
    harness watch-issue --state ~/nights --repository OWNER/NAME
    """
    night = _read_night(state)
    gh = Gh(this_repository(repository, os.environ, Path.cwd()), label=_LABEL)
    update_tracker(gh, issue_of(night), dry_run=dry_run)


def _day(text: str) -> End:
    """Parse the value of `--day`. Raises `UserMistake`."""
    hint = "write today, or a date such as 2025-07-31"
    try:
        end = parse_end(text, "--day", now=datetime.now(UTC))
    except UserMistake as error:
        raise UserMistake(f"--day {text!r} is not a day before today", hint=hint) from error
    if end.kind is not EndKind.DAY:
        raise UserMistake(f"--day {text!r} is not a day", hint=hint)
    return end


def _read_night(state: Path) -> ProjectNight:
    path = state / _NIGHT
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = {key: told[key] for key in ("name", "command", "date", "sentence", "green", "answer")}
        return ProjectNight(**known, status=NightStatus(told["status"]), constraints=tuple(told["constraints"]))
    except FileNotFoundError as error:
        hint = "run harness watch first, with the same --state"
        raise UserMistake(f"there is no night in {state}", hint=hint) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserMistake(f"{path} was not written by harness watch", hint="run harness watch first") from error
