"""`harness bisect`: which release broke it, or fixed it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from attrs import evolve
from click.core import ParameterSource

from harness.bisect.ask_commits import ask_commits
from harness.bisect.ask_upgrade import UpgradeQuestion, ask_upgrade
from harness.bisect.investigate import ask
from harness.cli.constraints_file import write_constraints
from harness.cli.options import json_option, repro_options, settings_options
from harness.cli.paths import print_reports, short
from harness.cli.project_options import project_options
from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.culprit import Level
from harness.model.plain_json import to_json
from harness.report.answer.keeping import keep_and_report
from harness.request.chosen_command import ChosenProject, chosen_command
from harness.request.chosen_repro import required_python, typed_words
from harness.request.durations import read_duration
from harness.request.ends import read_ends
from harness.request.project import Projects
from harness.request.question import Question
from harness.session import open_session
from harness.settings import Group, Settings
from harness.terminal import print_answer, reporting
from harness.terminal.console import Console
from harness.terminal.upgrade import print_upgrade


class _Command(click.Command):
    """A command whose `--with -r FILE` reads as it does for pip."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for word in args:
            if joined[-2:] == ["--with", "-r"]:
                joined[-1] = f"-r {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


@click.command(cls=_Command)
@click.argument("subject", required=False)
@repro_options
@click.option(
    "--good",
    metavar="END",
    help="Where it works: a release, a day, a lock file, a Python or a commit [default: the repro's, else steps back].",
)
@click.option("--bad", metavar="END", help="Where it fails [default: the repro's, else the newest].")
@project_options
@click.option("--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad.")
@click.option("--pre", "prereleases", is_flag=True, help="Try pre-releases of the subject too.")
@click.option(
    "--confirm",
    type=click.IntRange(0, 20),
    default=None,
    help="Run both sides of the change this often again [default: as often as it takes to be sure].",
)
@click.option("--flaky", is_flag=True, help="One run does not tell good from bad: repeat runs from the start.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1.0, max_open=True),
    default=0.99,
    show_default=True,
    help="How sure a release has to be before it is named.",
)
@click.option(
    "--trust-ends",
    is_flag=True,
    help="With --flaky: the bug never shows at the good end and often does at the bad one, for certain. Saves runs.",
)
@click.option("--fork/--no-fork", default=True, help="Fork runs that search for lines; proofs are fresh processes.")
@click.option("--git", default="", metavar="PATH|URL|auto", help="SUBJECT's repository, to go down to the commit.")
@click.option(
    "--depth",
    type=click.Choice([level.value for level in Level]),
    default=Level.REGION.value,
    show_default="region; release where the package is what is looked for",
    help="How deep to go: " + ", ".join(level.value for level in Level) + ".",
)
@click.option(
    "--time",
    "time_limit",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="How long to search below the release: 90s, 10m, 1h.",
)
@json_option("the answer as JSON")
@settings_options(Group.LANES, Group.QUESTION, Group.RUNS, Group.LIMITS)
def bisect(
    subject: str | None,
    repro: str | None,
    run: str | None,
    good: str | None,
    bad: str | None,
    constraints: Path | None,
    depth: str,
    as_json: bool,
    settings: Settings,
    **more: Any,
) -> None:
    """Find the release of SUBJECT that broke a repro, or of whatever package did.

    With SUBJECT alone, it takes the repro that names it, with that repro's own bounds. Without SUBJECT, the package is
    what is looked for, between two days, lock files or environments; without --good it steps back from today.

    \b
    harness bisect --run pytest
    harness bisect --run pytest --good 2025-06-20
    harness bisect --run "python -m unittest" --good freeze-old.txt --bad ~/venv-new
    harness bisect transformers
    harness bisect transformers --good 4.50.3 --bad 4.57.6
    harness bisect transformers --find-fix --bad 4.57.6
    harness bisect peft --run "pytest -x tests/test_lora.py" --with pytest
    harness bisect peft --good v0.17.0 --bad main --git ~/src/peft
    """
    worlds = read_ends(good, bad, subject, commits=bool(more["git"]))
    if worlds is not None and worlds.are_commits and subject is None:
        raise UserMistake("a commit of which package?", hint="harness bisect PACKAGE --good TAG --bad main --git CLONE")
    more["time_s"] = read_duration(more.pop("time_limit"))
    in_project = ChosenProject(*(more.pop(name) for name in ("folder", "extras", "groups", "unpin")))
    required = required_python(repro, run, subject)
    with (
        reporting(Console(stderr=True), quiet=as_json) as reporter,
        open_session(settings, reporter, requires_python=required) as session,
    ):
        projects = Projects(session.workspace, session.local.builder.uv, session.interpreter)
        chosen = chosen_command(repro, run, subject, settings, in_project, projects)
        if worlds is not None and worlds.are_commits:
            more["typed"] = typed_words(repro, run, settings.params)
            question = Question.under(evolve(settings, with_=chosen.with_), subject or "", chosen.repro, **more)
            between = ask_commits(session, question, worlds, chosen.told)
        elif worlds is not None:
            about = normalized_name(subject) if subject else ""
            asked_depth = click.get_current_context().get_parameter_source("depth") is ParameterSource.COMMANDLINE
            until = Level(depth) if asked_depth else Level.RELEASE
            upgrade = ask_upgrade(
                session, UpgradeQuestion(worlds, chosen.repro, chosen.with_, about, chosen.told), until
            )
        else:
            more["typed"] = typed_words(repro, run, settings.params)
            asked = evolve(settings, with_=chosen.with_)
            question = Question.under(asked, subject or "", chosen.repro, good=good, bad=bad, **more)
            plan, answer = ask(session, question, Level(depth), chosen.told)
    if worlds is not None and worlds.are_commits:
        plan, answer = between.plan, between.answer
        reports = keep_and_report(session.store, plan, answer, settings.pass_env, between.commits)
    elif worlds is not None:
        written = write_constraints(upgrade, constraints, session.store.root)
        upgrade_reports = [
            path
            for of_plan, one in upgrade.answers
            for path in keep_and_report(session.store, of_plan, one, settings.pass_env)
        ]
        if as_json:
            click.echo(to_json(upgrade.as_json()))
        else:
            print_upgrade(upgrade, str(settings.results))
            print_reports(upgrade_reports)
            click.echo(f"  constraints: {short(written)}" if written is not None else "", nl=written is not None)
        sys.exit(upgrade.status.exit_code)
    else:
        reports = keep_and_report(session.store, plan, answer, settings.pass_env)
    if as_json:
        click.echo(to_json(answer.as_json()))
    else:
        print_answer(Console(soft_wrap=True), answer, str(settings.results))
        print_reports(reports)
    sys.exit(answer.status.exit_code)
