"""`harness bisect`: which release broke it, or fixed it."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import click
from attrs import evolve
from rich.console import Console

from harness.bisect.investigate import investigate
from harness.cli.lane_options import lane_options, open_place
from harness.cli.report import keep_and_report
from harness.cli.repro_options import chosen_repro, short, typed_words
from harness.cli.wiring import open_workshop, resource_options, shared_options
from harness.model.culprit import Level
from harness.planning.plan import make_plan
from harness.request.question import Question
from harness.run.devices import choose_device
from harness.terminal import print_answer, reporting


@click.command()
@click.argument("subject")
@click.option("--repro", metavar="NAME|PATH", help="Repro to run [default: the one that names the subject].")
@click.option("--run", metavar="COMMAND", help="Command to run instead: exit code 0 is good, 125 skip, else it failed.")
@click.option(
    "--good",
    metavar="V",
    help="A release that works [default: the repro's, else steps back until one is found].",
)
@click.option("--bad", metavar="V", help="A release that fails [default: the repro's, else the newest].")
@click.option("--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad.")
@click.option("--pre", is_flag=True, help="Try pre-releases of the subject too.")
@click.option(
    "--confirm",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Run both sides of the change this often again.",
)
@click.option(
    "--depth",
    type=click.Choice([level.value for level in Level]),
    default=Level.REGION.value,
    show_default=True,
    help="How closely to look for what of the change made the difference.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout, and nothing else there.")
@lane_options
@shared_options
@resource_options
def bisect(
    subject: str,
    repro: str | None,
    run: str | None,
    good: str | None,
    bad: str | None,
    find_fix: bool,
    pre: bool,
    confirm: int,
    depth: str,
    as_json: bool,
    lanes: int | None,
    scheduler: str | None,
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
    results_folder: Path,
    gpu_wait: float,
    max_disk: int | None,
) -> None:
    """Find the release of SUBJECT that broke a repro.

    With nothing else, it takes the repro that names SUBJECT, with that repro's own bounds.

    \b
    harness bisect transformers
    harness bisect transformers --good 4.50.3 --bad 4.57.6
    harness bisect transformers --find-fix --bad 4.57.6
    harness bisect peft --run "pytest -x tests/test_lora.py" --with pytest
    """
    question = Question(
        subject=subject,
        repro=chosen_repro(repro, run, subject, params),
        good=good,
        bad=bad,
        find_fix=find_fix,
        with_=with_,
        hold=hold,
        as_of=as_of,
        prereleases=pre,
        python=python,
        device=device,
        confirm=confirm,
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
        plan = make_plan(question, index=workshop.index, interpreter=workshop.interpreter, device=chosen)
        plan = evolve(plan, choices=(*plan.choices, f"{why} (--device changes it)"))
        with contextlib.closing(place.open_lanes(chosen)) as pool:
            answer = investigate(plan, place.prober, pool, workshop.index, reporter, Level(depth))
    reports = keep_and_report(workshop.store, plan, answer, pass_env)
    if as_json:
        click.echo(json.dumps(answer.as_json(), indent=1))
    else:
        print_answer(Console(soft_wrap=True), answer, str(results_folder))
        for path in reports:
            click.echo(f"  report: {short(path)}")
    sys.exit(answer.status.exit_code)
