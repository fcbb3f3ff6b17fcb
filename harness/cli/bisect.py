"""`harness bisect`: which release broke it, or fixed it."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console

from harness.bisect.investigate import ask
from harness.cli.options import json_option, repro_options, settings_options
from harness.cli.paths import print_reports
from harness.model.culprit import Level
from harness.report.answer.keeping import keep_and_report
from harness.request.chosen_repro import chosen_repro, typed_words
from harness.request.question import Question
from harness.session import open_session
from harness.settings import Group, Settings
from harness.terminal import print_answer, reporting


@click.command()
@click.argument("subject")
@repro_options
@click.option(
    "--good",
    metavar="V",
    help="A release that works [default: the repro's, else steps back until one is found].",
)
@click.option("--bad", metavar="V", help="A release that fails [default: the repro's, else the newest].")
@click.option("--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad.")
@click.option("--pre", "prereleases", is_flag=True, help="Try pre-releases of the subject too.")
@click.option(
    "--confirm",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Run both sides of the change this often again.",
)
@click.option("--git", default="", metavar="PATH|URL|auto", help="SUBJECT's repository, to go down to the commit.")
@click.option(
    "--depth",
    type=click.Choice([level.value for level in Level]),
    default=Level.REGION.value,
    show_default=True,
    help="How deep to go: " + ", ".join(level.value for level in Level) + ".",
)
@json_option("the answer as JSON")
@settings_options(Group.LANES, Group.QUESTION, Group.RUNS, Group.LIMITS)
def bisect(
    subject: str,
    repro: str | None,
    run: str | None,
    depth: str,
    as_json: bool,
    settings: Settings,
    **ends: Any,
) -> None:
    """Find the release of SUBJECT that broke a repro.

    With nothing else, it takes the repro that names SUBJECT, with that repro's own bounds.

    \b
    harness bisect transformers
    harness bisect transformers --good 4.50.3 --bad 4.57.6
    harness bisect transformers --find-fix --bad 4.57.6
    harness bisect peft --run "pytest -x tests/test_lora.py" --with pytest
    """
    chosen = chosen_repro(repro, run, subject, settings.params)
    typed = typed_words(repro, run, settings.params)
    question = Question.under(settings, subject, chosen, typed=typed, **ends)
    with (
        reporting(Console(stderr=True), quiet=as_json) as reporter,
        open_session(settings, reporter, requires_python=chosen.requires_python) as session,
    ):
        plan, answer = ask(session, question, Level(depth))
    reports = keep_and_report(session.store, plan, answer, settings.pass_env)
    if as_json:
        click.echo(json.dumps(answer.as_json(), indent=1))
    else:
        print_answer(Console(soft_wrap=True), answer, str(settings.results))
        print_reports(reports)
    sys.exit(answer.status.exit_code)
