"""`harness nightly`: runs a matrix against the newest releases and compares it with its last night."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve

from harness.cli.options import SectionCommand, json_option, settings_options
from harness.cli.written import short
from harness.events import Note
from harness.matrix import Target, expanded, read_matrix
from harness.matrix.sessions import CommitLookup, Sessions, known_as, open_sessions, pythons_of
from harness.model.text import to_json
from harness.nightly.news import as_json as night_as_json
from harness.nightly.news import exit_code, report_of, write_page
from harness.nightly.night import Nightly
from harness.nightly.record import Night, NightArchive, Past
from harness.nightly.tonight import Budget, estimated_s, tonight
from harness.nightly.triage import Triage
from harness.redact import Private, passed_secrets, redacted
from harness.report.privacy import private_of
from harness.request.parsing import day
from harness.settings import Group, Settings
from harness.store import Store
from harness.terminal.console import Console
from harness.terminal.live import WarningsOnly
from harness.terminal.nights import NightView, estimate, print_night

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.events import Reporter
    from harness.matrix import Matrix
    from harness.model import Release
    from harness.scheduling.scheduler import Lanes

_EPILOG = """\b
Exit codes:
    0  nothing new broke (always in the first night, which has nothing to compare with)
    1  something broke, or broke again: it has a report, or still waits for its cause
    3  no cell could be judged
  The others are those of every command.
"""


@click.command(cls=SectionCommand, epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--date", metavar="DATE", help="As of that night (2024-03-01), at 00:00 UTC [default: as of now].")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="MINUTES",
    help="Stop after this long; what is left runs first next night.",
)
@click.option(
    "--gpu-budget", type=click.FloatRange(min=0), metavar="MINUTES", help="The same for runs on GPUs, added up."
)
@json_option("JSON (schema 1)")
@settings_options(Group.LANES, Group.RUNS, Group.LIMITS)
def nightly(
    file: Path, date: str | None, budget: float | None, gpu_budget: float | None, as_json: bool, settings: Settings
) -> None:
    """Run the matrix FILE as of tonight, and say what turned since its last night.

    Axes that name no newest releases get them, and pre-releases. A cell that was good and fails now is run again; its
    cause is searched between the two locks, and each way to fail with one cause has one report. Later nights add to
    that report which cells it reached and which release fixed it. Where nothing changed, it prints one line.

    A package axis can take `main`, or another branch as `@BRANCH`: it is compared with the commit of the last night,
    and what broke it is searched down to the commit and its pull request.

    \b
    harness nightly matrices/nightly.toml --budget 60
    harness nightly matrices/nightly.toml --date 2025-06-27
    """
    store = Store.opened(settings.results)
    archive = NightArchive(store)
    matrix, changes = tonight(read_matrix(file))
    start = (day(date, "--date") if date else None) or archive.start_of(matrix.name, datetime.now(UTC))
    past = Past.of(archive.before(start), matrix.name)
    console = Console(stderr=True)
    reporter = WarningsOnly(console) if as_json else NightView(console)
    with open_sessions(settings, pythons_of(matrix), reporter, as_of=start) as sessions:
        matrix = _as_of(matrix, sessions, start, archive.commits_of(matrix.name, start))
        _announce(matrix, start, changes, past, reporter)
        commits = {known_as(one.project, one.revision): one.sha for one in matrix.commits.values()}
        archive.put(Night(matrix.name, start.isoformat(), commits=commits))
        with sessions.lanes(filter(sessions.can_run, matrix.cells)) as lanes:
            triage = _triage(matrix, start, past, sessions, lanes, Budget(time.monotonic, budget, gpu_budget))
            blocked = sessions.blocked(matrix.cells)
            cells, probes = matrix.cells, sessions.probes
            night = Nightly(matrix.name, start.isoformat(), cells, past, probes, triage, blocked).run()
    night = evolve(night, commits=commits)
    # Redact before comparing with earlier nights, which were redacted when they were stored.
    night = redacted(night, Private(passed_secrets(os.environ, settings.pass_env)))
    archive.put(night)
    page = write_page(store, private_of(store, pass_env=settings.pass_env))
    if as_json:
        click.echo(to_json(night_as_json(night, past, triage.known())))
    else:
        reports = {known.title: str(short(store.root / report_of(known))) for known in night.breaks}
        print_night(Console(soft_wrap=True), night, past, reports)
        if night.breaks:
            reporter.report(Note(f"all nights: {short(page)}"))
    sys.exit(exit_code(night, past))


def _announce(matrix: Matrix, start: datetime, changes: Iterable[str], past: Past, reporter: Reporter) -> None:
    cells = matrix.cells
    about = estimate(len(cells), estimated_s(cells, past), estimated_s(cells, past, on_gpu=True))
    reporter.report(Note(f"{matrix.name}, night of {start.date()}: {about}"))
    left_out = (f"{row.project} {row.version} left out: {row.reason}" for row in matrix.left_out)
    commits = (f"{one.project}: {one.revision} is {one.sha[:10]} of {one.date[:10]}" for one in matrix.commits.values())
    for sentence in (*changes, *left_out, *commits):
        reporter.report(Note(f"  {sentence}"))


def _triage(matrix: Matrix, start: datetime, past: Past, sessions: Sessions, lanes: Lanes, budget: Budget) -> Triage:
    first = sessions.first
    return Triage(
        matrix=matrix.name,
        start=start.isoformat(),
        past=past,
        store=sessions.store,
        probers=sessions.probers,
        index=first.index,
        lanes=lanes,
        budget=budget,
        reporter=first.reporter,
        pass_env=first.settings.pass_env,
    )


def _as_of(matrix: Matrix, sessions: Sessions, start: datetime, known: Mapping[str, str]) -> Matrix:
    """The matrix with the releases and commits that existed at the start of the night.

    `known` has the commits that this night looked up before it was interrupted.
    """

    def releases_of(project: str) -> list[Release]:
        releases = sessions.first.index.releases(project)
        return [release for release in releases if release.uploaded is None or release.uploaded <= start]

    interpreters = dict.fromkeys(session.interpreter for session in sessions.by_python.values())
    targets = [Target(one.version, frozenset(one.wheel_tags())) for one in interpreters]
    commits = CommitLookup(matrix.repositories, sessions.first.workspace.clones, start, known)
    return expanded(matrix, releases_of, targets, commits.find)
