"""`harness history`: every window of releases in which it was broken."""

from __future__ import annotations

import contextlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve
from rich.console import Console

from harness.cli.lane_options import lane_options, open_place
from harness.cli.private import private_of
from harness.cli.repro_options import chosen_repro, short, typed_words
from harness.cli.wiring import open_workshop, resource_options, shared_options
from harness.history import Scanning, make_history_plan
from harness.report.history.archive import keep_history
from harness.report.history.building import history_content, render_history_html, render_history_markdown
from harness.request.question import Question
from harness.run.devices import choose_device
from harness.terminal import print_history, reporting

if TYPE_CHECKING:
    from harness.history import History, HistoryPlan
    from harness.store import Store


@click.command()
@click.argument("subject")
@click.option("--repro", metavar="NAME|PATH", help="Repro to run [default: the one that names the subject].")
@click.option("--run", metavar="COMMAND", help="Command to run instead: exit code 0 is good, 125 skip, else it failed.")
@click.option("--from", "since", metavar="V", help="The oldest release [default: the repro's older bound, else all].")
@click.option("--to", "until", metavar="V", help="The newest release [default: the newest there is].")
@click.option("--pre", is_flag=True, help="Try pre-releases of the subject too.")
@click.option(
    "--max-gap",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of N neighbouring releases run at least one; 1 runs all [default: so that under a third is run].",
)
@lane_options
@click.option("--json", "as_json", is_flag=True, help="Print the history as JSON on stdout, and nothing else there.")
@shared_options
@resource_options
def history(
    subject: str,
    repro: str | None,
    run: str | None,
    since: str | None,
    until: str | None,
    pre: bool,
    max_gap: int | None,
    lanes: int | None,
    scheduler: str | None,
    as_json: bool,
    with_: tuple[str, ...],
    hold: tuple[str, ...],
    python: str | None,
    as_of: str | None,
    device: str,
    capability: str,
    params: tuple[str, ...],
    pass_env: tuple[str, ...],
    from_source: tuple[str, ...],
    torch_backend: str | None,
    gpu_wait: float,
    max_disk: int | None,
    results_folder: Path,
) -> None:
    """Show every window of releases of SUBJECT in which a repro was broken.

    A coarse scan, then a bisection of each change that it saw, from good to bad or back. What the results folder
    already has is not run again. What was not run is named: a window narrower than the gaps can hide there.

    Exit code: 0 windows were found, 1 no release that was run is broken, 3 skipped releases hide an edge, or none
    could be judged.

    \b
    harness history transformers
    harness history transformers --from 4.50.0 --to 5.10.4
    harness history transformers --max-gap 1 --lanes 4
    """
    question = Question(
        subject=subject,
        repro=chosen_repro(repro, run, subject, params),
        with_=with_,
        hold=hold,
        as_of=as_of,
        prereleases=pre,
        python=python,
        device=device,
        from_source=from_source,
        typed=typed_words(repro, run, params),
    )
    with reporting(Console(stderr=True), quiet=as_json) as reporter:
        workshop = open_workshop(
            results_folder,
            python=python,
            pass_env=pass_env,
            from_source=from_source,
            capability=capability,
            torch_backend=torch_backend,
            gpu_wait=gpu_wait,
            max_disk=max_disk,
            reporter=reporter,
        )
        place = click.get_current_context().with_resource(open_place(workshop, lanes, scheduler, reporter))
        chosen, why = choose_device(device, question.repro.device, place.gpus)
        made = make_history_plan(
            question,
            since=since,
            until=until,
            max_gap=max_gap,
            index=workshop.index,
            interpreter=workshop.interpreter,
            device=chosen,
        )
        made = evolve(made, plan=evolve(made.plan, choices=(*made.plan.choices, f"{why} (--device changes it)")))
        with contextlib.closing(place.open_lanes(chosen)) as pool:
            found = Scanning(made, place.prober, pool, reporter).run()
    reports = _keep(workshop.store, made, found, pass_env)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1))
    else:
        print_history(Console(soft_wrap=True), found, str(results_folder))
        for path in reports:
            click.echo(f"  report: {short(path)}")
    sys.exit(found.status.exit_code)


def _keep(store: Store, made: HistoryPlan, found: History, pass_env: tuple[str, ...]) -> tuple[Path, ...]:
    """Keep a history and write its pages below the results folder; their paths. Raises `NoSpace`."""
    kept = datetime.now(UTC).isoformat()
    seen = [observation for step in found.steps if (observation := store.get(step.observation)) is not None]
    pins = {pin.name for observation in seen if observation.lock is not None for pin in observation.lock.pins}
    private = private_of(store, pass_env=pass_env, spared=pins | {found.subject})
    logs = {observation.key: store.log(observation) for observation in seen}
    content = history_content(made, found, kept=kept, logs=logs, private=private)
    name = f"reports/history-{keep_history(store, made, found, kept, private)}"
    return (
        store.write(f"{name}.md", render_history_markdown(content)),
        store.write(f"{name}.html", render_history_html(content)),
    )
