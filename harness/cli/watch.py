"""The commands of nights and watches: they run one, show it while it runs, and keep issues on what it found."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from harness.arguments import OptionGroup
from harness.atomic import write_whole
from harness.bisection.ask import question_of
from harness.cli.options import FILE, FOLDER, SectionCommand, json_option, settings_options
from harness.cli.output import Output, check_replaceable, constraints_text, output_options
from harness.cli.search_options import as_request, project_options, question_settings
from harness.errors import HarnessError, Interrupted, NoSpace, UserMistake
from harness.events import Note, Reporter
from harness.matrix import Matrix, read_matrix
from harness.matrix.running import expanded_by_index, open_sessions, pythons_of
from harness.model.text import counted, to_json
from harness.question.ends import End, EndKind, Ends, parse_end
from harness.question.parsing import day
from harness.question.request import QuestionKind, Request
from harness.records import as_record, read_record, write_record
from harness.redact import Private, redacted
from harness.report.privacy import private_of
from harness.session import open_session
from harness.settings import Settings
from harness.store import Store
from harness.terminal.console import Console, print_text, short_path
from harness.watch.news import changed_causes, exit_code, news_of, night_record, one_line, report_of, write_page
from harness.watch.project import SCHEMA, NightStatus, ProjectNight, ProjectWatch
from harness.watch.state import MOST_UNJUDGED, Night, NightArchive, Past
from harness.watch.tracker import LABEL, UNJUDGED, Gh, actions, issues_of, issues_on_unjudged, this_repository
from harness.watch.watch import Budget, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPILOG = """\b
Exit codes:
    0  nothing new broke; the first night only notes what is bad, since it has nothing to compare with
    1  something broke, or broke again: it has a report, or still waits for its cause
    3  no cell could be judged
  The others are those of every command.
"""


@click.command(cls=SectionCommand, epilog=_EPILOG)
@click.argument("file", type=FILE)
@click.option("--date", metavar="DATE", help="As of that night (2024-03-01), at 00:00 UTC [default: as of now].")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="MINUTES",
    help="Stop after this long; what is left runs first next night.",
)
@output_options("the record of the night as JSON (schema 1)")
@settings_options(OptionGroup.LANES, OptionGroup.RUNS, OptionGroup.LIMITS)
def nightly(file: Path, date: str | None, budget: float | None, output: Output, settings: Settings) -> None:
    """Run the matrix FILE as of tonight, and say what turned since its last night.

    Axes follow the index by `latest` or `prereleases`. A cell that was good and fails now is run again; its cause is
    searched between the two locks, and has one report, whichever cells it reaches. Where nothing changed, it prints one
    line.

    \b
    harness nightly matrices/nightly.toml --budget 60
    harness nightly matrices/nightly.toml --date 2025-06-27
    """
    store = Store.opened(settings.results, settings.pass_env)
    archive = NightArchive(store)
    matrix = read_matrix(file)
    start = (day(date, "--date", begins=True) if date else None) or archive.start_of(matrix.name, datetime.now(UTC))
    past = archive.past(before=start)
    archive.put(Night(matrix.name, start.isoformat()))  # a night that can't begin is one, too
    with (
        output.reporting() as reporter,
        open_sessions(
            settings, pythons_of(matrix), spent := Budget(reporter, time.monotonic, budget), as_of=start
        ) as sessions,
    ):
        matrix = expanded_by_index(matrix, sessions.first, start)
        _announce(matrix, start, reporter)
        runnable = sessions.runnable(matrix.cells)
        with sessions.lanes(runnable) as lanes:
            watch = Watch(matrix.name, matrix.cells, start.isoformat(), past, sessions, lanes, spent)
            try:
                watch.run()
            finally:  # a night that is stopped keeps what it judged
                # Redact before comparing with earlier nights, which were redacted when they were stored.
                night = redacted(watch.night, Private(store.secrets))
                archive.put(night)
    page = write_page(store, private_of(store))
    output.answer(night_record(night, past), exit_code(night, past), report=page)
    if output.is_for_people:
        print_night(Console(soft_wrap=True), night, past, store.root)
        if changed_causes(night, past):
            click.echo(f"all nights: {short_path(page)}", err=True)
    sys.exit(exit_code(night, past))


def _announce(matrix: Matrix, start: datetime, reporter: Reporter) -> None:
    reporter.report(Note(f"{matrix.name}, night of {start.date()}: {counted(len(matrix.cells), 'cell')}"))
    for row in matrix.left_out:
        reporter.report(Note(f"  {row.project} {row.version} left out: {row.reason}"))


_LABEL = "harness-watch"
_NIGHT, _REPORT, _CONSTRAINTS = "night.json", "report.md", "constraints.txt"

_state_option = click.option(
    "--state",
    type=FOLDER,
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
@output_options("the record of the night as JSON")
@question_settings
@as_request
def watch(
    request: Request,
    state: Path,
    name: str,
    day: str,
    constraints: Path | None,
    output: Output,
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
    check_replaceable(constraints)
    _check_state(state)
    with (
        output.reporting() as reporter,
        _ended_early(state, name, settings),
        open_session(settings, reporter) as session,
    ):
        today = _day(day, session.now)
        question = question_of(session, request, QuestionKind.PACKAGES, Ends(None, today))
        night = ProjectWatch(session, question, today, state.absolute(), name, str(request.run)).run()
        night = redacted(night, private_of(session.store))
    night = _counted(night, state)
    _keep(night, state, constraints)
    code = night.status.exit_code
    output.answer(as_record(night, SCHEMA), code, night=state / _NIGHT)
    if output.is_for_people:
        _print_watch(night)
    sys.exit(code)


def _print_watch(night: ProjectNight) -> None:
    click.echo(night.sentence)
    if len(night.unjudged) >= MOST_UNJUDGED:
        click.echo(f"Nothing was judged in {len(night.unjudged)} nights in a row.")
    if night.constraints:
        click.echo(f"Workaround: {' '.join(night.constraints)}")


@contextlib.contextmanager
def _ended_early(state: Path, name: str, settings: Settings) -> Iterator[None]:
    """Keep a night that an error ends, where there was one before: it judged nothing. Raises the error again."""
    try:
        yield
    except Interrupted:
        raise
    except HarnessError as error:
        if (state / _NIGHT).is_file():
            store = Store.opened(settings.results, settings.pass_env)
            words = redacted(f"The night ended early: {error.message}.", private_of(store))
            night = _counted(ProjectNight(name, NightStatus.UNKNOWN, words), state)
            with contextlib.suppress(OSError):
                write_record(state / _NIGHT, night, SCHEMA, indent=1)
        raise


def _counted(night: ProjectNight, state: Path) -> ProjectNight:
    """Return a night of now with how many in a row have judged nothing."""
    return night.after(read_record(state / _NIGHT, ProjectNight, SCHEMA), f"{datetime.now(UTC):%Y-%m-%d}")


def _check_state(state: Path) -> None:
    """Raise `UserMistake` if a folder without a night has files of the user under the names of those of a night."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        if "schema" in json.loads((state / _NIGHT).read_text(encoding="utf-8")):
            return
    if mine := [name for name in (_NIGHT, _REPORT, _CONSTRAINTS) if (state / name).exists()]:
        hint = "--state takes a folder of its own"
        raise UserMistake(f"{state / mine[0]} is not from harness watch, and would be overwritten", hint=hint)


def _keep(night: ProjectNight, state: Path, constraints: Path | None) -> None:
    """Write the night, its report and its constraints; a file without content is removed. Raises `NoSpace`."""
    texts = {
        state / _NIGHT: json.dumps(as_record(night, SCHEMA), indent=1) + "\n",
        state / _REPORT: night.report if night.status is NightStatus.BROKEN else "",
        state / _CONSTRAINTS: "".join(f"{text}\n" for text in night.constraints),
    }
    if constraints is not None:
        texts[constraints] = constraints_text(night.sentence, night.constraints) if night.constraints else ""
        del texts[state / _CONSTRAINTS]
    try:
        for path, text in texts.items():
            if text:
                write_whole(path, text)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise NoSpace(f"can't write to {state}: {error.strerror}") from error


@click.command()
@click.option(
    "--state",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep the issues of harness watch with this folder instead [default: those of the nights].",
)
@click.option(
    "--unjudged",
    type=click.IntRange(min=1),
    default=MOST_UNJUDGED,
    show_default=True,
    metavar="NIGHTS",
    help="Open an issue once so many nights in a row have judged nothing.",
)
@click.option("--dry-run", is_flag=True, help="Print the gh commands and change nothing.")
@json_option("what is changed as JSON")
@settings_options()
def issues(state: Path | None, unjudged: int, dry_run: bool, as_json: bool, settings: Settings) -> None:
    """Open, update and close the issues in this repository: one for each cause that the nights found.

    Nights that judge nothing have an issue of their own, because nobody would hear of a regression.

    With --state they are those on what `harness watch` found. Needs the gh executable, logged in or with GH_TOKEN.
    Running it again changes nothing. It writes to the repository of the workflow or of the git remote, and to no other.

    \b
    harness issues --dry-run
    harness issues --state .harness-watch
    """
    if state is not None:
        night = _read_night(state)
        is_silent = len(night.unjudged) >= unjudged
        wanted = (night.issue_on_unjudged,) if is_silent else night.issues if night.is_sure else ()
        label, watch = _LABEL, night.marker if night.is_sure else ""
    else:
        store = Store.opened(settings.results)
        past, private = NightArchive(store).past(), private_of(store)
        causes, label, watch = redacted(past.causes, private), LABEL, UNJUDGED
        wanted = issues_of(causes.values(), {name: _report(store, name) for name in causes})
        wanted += redacted(issues_on_unjudged(past, unjudged), private)
    gh = Gh(this_repository(os.environ, Path.cwd()), label=label)
    needed = actions(wanted, gh.issues(), watch)
    for action in needed:
        if not dry_run:
            gh.do(action)
        if not as_json:
            click.echo(gh.line(action) if dry_run else f"{action.kind.value}: {action.title}")
    if as_json:
        rows = [{"kind": action.kind.value, "title": action.title} for action in needed]
        click.echo(to_json({"repository": gh.repository, "dry_run": dry_run, "actions": rows}))
    elif not needed:
        click.echo(f"nothing to change in the issues of {gh.repository}")


def _report(store: Store, name: str) -> str:
    try:
        return (store.root / "reports" / f"{name}.md").read_text(encoding="utf-8")
    except OSError:
        return ""


def _day(text: str, now: datetime) -> End:
    """Parse the value of `--day`. Raises `UserMistake`."""
    end = parse_end(text, "--day", now=now)
    if end.kind is not EndKind.DAY:
        raise UserMistake(f"--day {text!r} is not a day", hint="write today, or a date such as 2025-07-31")
    return end


def _read_night(state: Path) -> ProjectNight:
    night = read_record(state / _NIGHT, ProjectNight, SCHEMA)
    if night is None:
        hint = "run harness watch first, with the same --state"
        raise UserMistake(f"there is no night of harness watch in {state}", hint=hint)
    return night


_STYLE = {
    "newly broken": "bold red",
    "broken again": "bold red",
    "broken, cause not found yet": "bold red",
    "fixed": "bold green",
}


def print_night(console: Console, night: Night, past: Past, results: Path) -> None:
    """Print a summary line, then each heading with its sentences, then the reports in the results folder."""
    print_text(console, one_line(night, past))
    for heading, lines in news_of(night, past).items():
        console.print(Text(f"{heading}:", style=_STYLE.get(heading, "bold yellow")))
        for line in lines:
            print_text(console, f"  {line}")
    for cause in changed_causes(night, past):
        print_text(console, f"  report: {short_path(results / report_of(cause))} ({cause.title})")
