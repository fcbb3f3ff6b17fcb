"""`harness probe`: runs one repro once in one environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import cattrs
import click
from attrs import evolve

from harness.arguments import OptionGroup
from harness.cli.options import FOLDER, SectionCommand, json_option, repro_argument, settings_options
from harness.environment import CannotBuild
from harness.environment.workspace import check_ours
from harness.errors import UserMistake
from harness.events import Note, Reporter
from harness.model.text import to_json
from harness.question.commands import ChosenProject, chosen_command, read_with_option
from harness.question.project import Projects
from harness.question.repros import required_python
from harness.question.single import executed, prepared_again, prepared_probe
from harness.session import local_session, results_with
from harness.settings import Settings
from harness.store import OWN_FOLDER
from harness.terminal import PlainView, print_observation
from harness.terminal.console import Console
from harness.terminal.live import WarningsOnly


@click.command(cls=SectionCommand)
@repro_argument(required=False)
@click.option("--run", metavar="COMMAND", help="Command to run instead of a repro.")
@click.option("--again", metavar="KEY", help="Run an observation from the results again: same lock, same repro.")
@click.option("--fresh", is_flag=True, help="Run it even if the results have the answer.")
@click.option(
    "--repeat", is_flag=True, help="Repeat a run judged by a metric until it is clearly within its bounds or not."
)
@click.option(
    "--environment",
    type=FOLDER,
    metavar="FOLDER",
    help="Build the environment here, too, and keep it; it is rebuilt when its lock changes.",
)
@click.option(
    "--git-bisect", is_flag=True, help="Exit codes for `git bisect run`: 0 good, 1 bad, 125 skip, 255 an error."
)
@json_option("the observation as JSON")
@settings_options(OptionGroup.QUESTION, OptionGroup.RUNS, OptionGroup.LIMITS)
def probe(
    repro: str | None,
    run: str | None,
    again: str | None,
    fresh: bool,
    repeat: bool,
    environment: Path | None,
    git_bisect: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Run REPRO once and say what happened.

    With --python PATH of an environment's interpreter, the repro runs in that environment as it is. With --environment
    FOLDER its environment is built there once more, for you to look into, even if the answer is already known.

    \b
    harness probe whisper_lora_checkpointing --with transformers==4.53.0
    harness probe repros/second_backward.py --python ~/venv/bin/python
    harness probe repros/mine.py --with "peft @ ./peft@1a2b3c4"
    git bisect run harness probe ~/mine.py --with "peft @ ." --git-bisect
    """
    if settings.in_place and environment:
        raise UserMistake("--python PATH runs in an existing environment, --environment builds one: give one of them")
    if environment:
        check_ours(environment)
    console = Console(stderr=True)
    reporter = WarningsOnly(console) if as_json else PlainView(console)
    if again and not (repro or run or settings.with_):
        settings = _where_it_ran(again, settings, reporter)
    needs = None if again else required_python(repro, run, None)
    session = local_session(settings, reporter, requires_python=needs)
    projects = Projects.of(session)
    if again:
        beside = read_with_option(settings.with_, projects)
        _tell(reporter, beside.notes)
        if beside.requirements:
            raise UserMistake("--again takes the packages of its lock; --with can only give its folders again")
        session, prepared = prepared_again(session, again, repro, run, beside.folders)
    else:
        chosen = chosen_command(repro, run, None, settings, ChosenProject(), projects)
        _tell(reporter, chosen.notes)
        session = evolve(session, settings=evolve(settings, with_=chosen.with_))
        prepared = prepared_probe(session, chosen.repro, fresh=fresh, replaced=chosen.replaced)
    probed = executed(session, prepared, repeat=repeat)
    if as_json:
        click.echo(to_json(cattrs.unstructure(probed.observation)))
    else:
        print_observation(Console(soft_wrap=True), probed.observation, probed.judgement, session.store)
    if environment and (lock := probed.observation.lock) is not None:
        try:
            session.local.builder.give(lock, environment)
        except CannotBuild as why:
            click.echo(f"{environment} is left as it was: its packages can't be installed: {why}", err=True)
    sys.exit(probed.exit_code_for_git if git_bisect else probed.exit_code)


def _where_it_ran(key: str, settings: Settings, reporter: Reporter) -> Settings:
    """Return the settings with the results that have a run, and go to the folder whose own they are."""
    results = results_with(key, settings.results).absolute()
    if results.name == OWN_FOLDER and results.is_dir() and results.parent != Path.cwd():
        reporter.report(Note(f"in {results.parent}, where its question was asked"))
        os.chdir(results.parent)
    return evolve(settings, results=results)


def _tell(reporter: Reporter, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        reporter.report(Note(sentence))
