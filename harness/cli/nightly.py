"""`harness nightly`: a matrix against the newest releases, compared with its last night."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import frozen
from rich.console import Console

from harness.cli.benches import Benches, open_benches, open_places, pythons_of
from harness.cli.lane_options import lane_options
from harness.cli.private import private_of
from harness.cli.report import write_reports
from harness.cli.wiring import resource_options, results_option
from harness.errors import UserMistake
from harness.events import Note
from harness.matrix import Target, expanded, read_matrix, tonight
from harness.nightly.archive import NightArchive
from harness.nightly.budget import Budget
from harness.nightly.night import Nightly
from harness.nightly.order import estimated_s
from harness.nightly.page import write_page
from harness.nightly.record import Night, Past
from harness.nightly.telling import as_json as night_as_json
from harness.nightly.telling import exit_code, report_of
from harness.nightly.triage import Settling
from harness.report import Archive, Private, passed_secrets, redacted
from harness.store import Store
from harness.terminal.nights import NightView, estimate, print_night
from harness.terminal.plain import WarningsOnly

if TYPE_CHECKING:
    from harness.matrix import Matrix
    from harness.model import Release
    from harness.report import KeptAnswer

_EPILOG = """\b
Exit codes:
    0  nothing new broke; so too in the first night, which has nothing to compare with
    1  something new broke, or broke again: it has a report, or turned bad and waits for its cause
    3  not one cell could be judged
  The others are those of every command.
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--date", metavar="DATE", help="As of that night (2024-03-01), at 00:00 UTC [default: as of now].")
@click.option(
    "--budget", type=click.FloatRange(min=0), metavar="MINUTES", help="What it may take; what is left comes first next."
)
@click.option(
    "--gpu-budget", type=click.FloatRange(min=0), metavar="MINUTES", help="The same for runs on GPUs, added up."
)
@lane_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) on stdout, and nothing else there.")
@click.option("--pass-env", multiple=True, metavar="NAME", help="Let repros see this environment variable.")
@click.option("--capability", default="8.6", show_default=True, help="What the stand-in for CUDA pretends to be.")
@click.option("--torch-backend", metavar="NAME", help="uv's choice of PyTorch builds: auto, cpu, cu128, ...")
@resource_options
@results_option
def nightly(
    file: Path,
    date: str | None,
    budget: float | None,
    gpu_budget: float | None,
    lanes: int | None,
    scheduler: str | None,
    as_json: bool,
    pass_env: tuple[str, ...],
    capability: str,
    torch_backend: str | None,
    gpu_wait: float,
    max_disk: int | None,
    results_folder: Path,
) -> None:
    """Run the matrix FILE as of tonight, and say what turned since its last night.

    Axes that name no newest releases get them, and pre-releases. A cell that was good and fails now is run again; its
    cause is searched between the two locks, and each way to fail with one cause has one report. Later nights add to
    that report which cells it reached and which release fixed it. Where nothing changed, it prints one line.

    \b
    harness nightly matrices/nightly.toml --budget 60
    harness nightly matrices/nightly.toml --date 2025-06-27
    """
    store = Store(results_folder.absolute())
    archive = NightArchive(store)
    matrix, changes = tonight(read_matrix(file))
    start = _start(date) or archive.start_of(matrix.name, datetime.now(UTC))
    past = Past.of(archive.before(start), matrix.name)
    console = Console(stderr=True)
    reporter = WarningsOnly(console) if as_json else NightView(console)
    benches = open_benches(
        results_folder,
        pythons_of(matrix),
        as_of=start,
        pass_env=pass_env,
        capability=capability,
        torch_backend=torch_backend,
        gpu_wait=gpu_wait,
        max_disk=max_disk,
        reporter=reporter,
    )
    matrix = _as_of(matrix, benches, start)
    cells = matrix.cells
    places = click.get_current_context().with_resource(open_places(benches, lanes, scheduler, reporter))
    benches = places.moved(benches)
    about = estimate(len(cells), estimated_s(cells, past), estimated_s(cells, past, on_gpu=True))
    reporter.report(Note(f"{matrix.name}, night of {start.date()}: {about}"))
    for sentence in (*changes, *(f"{row.project} {row.version} left out: {row.reason}" for row in matrix.left_out)):
        reporter.report(Note(f"  {sentence}"))
    pool = places.open_lanes(benches.bench.probe(cell) for cell in cells if cell.python not in benches.missing)
    begun = start.isoformat()
    settling = Settling(
        matrix=matrix.name,
        start=begun,
        past=past,
        store=store,
        probers=benches.probers,
        interpreters={interpreter.version: interpreter for interpreter in benches.bench.interpreters.values()},
        index=benches.bench.index,
        lanes=pool,
        reports=_Reports(store),
        budget=Budget(time.monotonic, budget, gpu_budget),
        reporter=reporter,
        pass_env=pass_env,
    )
    hindered = {cell.name: benches.missing[cell.python] for cell in cells if cell.python in benches.missing}
    archive.put(Night(matrix.name, begun))
    try:
        night = Nightly(matrix.name, begun, cells, past, benches.bench, settling, hindered).run()
    finally:
        pool.close()
    # Before it is compared with what was kept, in which nothing private is either.
    night = redacted(night, Private(passed_secrets(os.environ, pass_env)))
    archive.put(night)
    page = write_page(store, private_of(store, pass_env=pass_env))
    if as_json:
        click.echo(json.dumps(night_as_json(night, past, settling.known()), indent=1))
    else:
        reports = {known.title: str(_short(store.root / report_of(known))) for known in night.breaks}
        print_night(Console(soft_wrap=True), night, past, reports)
        if night.breaks:
            reporter.report(Note(f"all nights: {_short(page)}"))
    sys.exit(exit_code(night, past))


@frozen
class _Reports:
    """Reports by the ids of breaks."""

    store: Store

    def get(self, id: str) -> KeptAnswer | None:  # noqa: A002
        """The answer of a report, None where it is not there any more."""
        return next((kept for kept in Archive(self.store).all() if kept.id == id), None)

    def write(self, kept: KeptAnswer) -> None:
        """Keep an answer and write its report."""
        write_reports(self.store, kept)


def _as_of(matrix: Matrix, benches: Benches, start: datetime) -> Matrix:
    """The matrix with the releases that were there when the night began."""

    def releases_of(project: str) -> list[Release]:
        releases = benches.bench.index.releases(project)
        return [release for release in releases if release.uploaded is None or release.uploaded <= start]

    interpreters = dict.fromkeys(benches.bench.interpreters.values())
    targets = [Target(one.version, frozenset(one.wheel_tags())) for one in interpreters]
    return expanded(matrix, releases_of, targets)


def _start(date: str | None) -> datetime | None:
    if date is None:
        return None
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError as error:
        raise UserMistake(f"--date takes a day such as 2025-06-27, not {date!r}") from error


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
