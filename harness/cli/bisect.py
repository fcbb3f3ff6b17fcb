"""`harness bisect`: which release broke it, or fixed it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve, frozen
from click.core import ParameterSource

from harness.bisect.ask_commits import ask_commits
from harness.bisect.ask_upgrade import Below, UpgradeQuestion, ask_upgrade
from harness.bisect.investigate import ask
from harness.bisect.upgrade_answer import UpgradeAnswer
from harness.cli.options import grouped, json_option, repro_options, settings_options
from harness.cli.project_options import project_options
from harness.cli.search_options import SearchOptions, search_options
from harness.cli.written import print_reports, short, write_constraints
from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.culprit import Level
from harness.model.plain_json import to_json
from harness.report.answer.keeping import keep_and_report
from harness.request.commands import ChosenCommand, ChosenProject, chosen_command
from harness.request.ends import read_ends
from harness.request.project import Projects
from harness.request.question import Question
from harness.request.repros import required_python, runs_tests, typed_words
from harness.session import open_session
from harness.settings import Group, Settings
from harness.terminal import print_answer, reporting
from harness.terminal.console import Console
from harness.terminal.upgrade import print_upgrade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.bisect.answer import Answer
    from harness.planning.plan import Plan
    from harness.request.ends import Ends
    from harness.session import Session


class _Command(click.Command):
    """A command that accepts `--with -r FILE`, with pip's syntax."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for word in args:
            if joined[-2:] == ["--with", "-r"]:
                joined[-1] = f"-r {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


@frozen
class AskedFor:
    """The question as the user typed it: the package, what to run, and the two ends."""

    subject: str | None
    repro: str | None
    run: str | None
    good: str | None
    bad: str | None


@frozen
class Found:
    """The result of a bisection: the answer, its parts with their plans, and the commits of the range, if any."""

    answer: Answer | UpgradeAnswer
    parts: tuple[tuple[Plan, Answer], ...]
    commits: tuple[str, ...] = ()


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
@search_options
@json_option("the answer as JSON")
@settings_options(Group.LANES, Group.QUESTION, Group.RUNS, Group.LIMITS)
@grouped("asked", AskedFor)
def bisect(
    asked: AskedFor,
    project: ChosenProject,
    constraints: Path | None,
    search: SearchOptions,
    as_json: bool,
    settings: Settings,
) -> None:
    """Find the release of SUBJECT that broke a repro, or of whatever package did.

    With SUBJECT alone, it takes the repro that names it, with that repro's own bounds. Without SUBJECT, it finds the
    package too, between two days, lock files or environments; without --good it steps back from today.

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
    ends = _ends(asked, search, settings)
    required = required_python(asked.repro, asked.run, asked.subject)
    with (
        reporting(Console(stderr=True), quiet=as_json) as reporter,
        open_session(settings, reporter, requires_python=required) as session,
    ):
        projects = Projects(session.workspace, session.local.builder.uv, session.interpreter, session.index)
        if ends is not None and ends.good is not None and ends.good.moment is not None:
            project = evolve(project, good_day=ends.good.moment.isoformat())
        chosen = chosen_command(asked.repro, asked.run, asked.subject, settings, project, projects)
        if ends is None:
            found = _between_releases(session, asked, search, chosen)
        elif ends.are_commits:
            found = _between_commits(session, asked, search, chosen, ends)
        else:
            found = _between_worlds(session, asked, search, chosen, ends)
    reports = _reports(session, found)
    written = None
    if isinstance(found.answer, UpgradeAnswer):
        written = write_constraints(found.answer, constraints, session.store.root)
    if as_json:
        click.echo(to_json(found.answer.as_json()))
    else:
        _print(found.answer, str(settings.results), reports, written)
    sys.exit(found.answer.status.exit_code)


def _ends(asked: AskedFor, search: SearchOptions, settings: Settings) -> Ends | None:
    """The two ends, or None if the question is about releases of the subject."""
    is_suite = asked.run is not None and runs_tests(asked.run) and not search.is_about_releases
    is_suite = is_suite and settings.as_of != "era"
    ends = read_ends(asked.good, asked.bad, asked.subject, commits=bool(search.git), tests=is_suite)
    if ends is not None and ends.are_commits and asked.subject is None:
        raise UserMistake(
            "a commit needs a package: which one is it a commit of?",
            hint="harness bisect PACKAGE --good TAG --bad main --git CLONE",
        )
    return ends


def _question(
    session: Session, asked: AskedFor, search: SearchOptions, chosen: ChosenCommand, **more: str | None
) -> Question:
    return Question.under(
        evolve(session.settings, with_=chosen.with_),
        asked.subject or "",
        chosen.repro,
        typed=(*typed_words(asked.repro, asked.run, session.settings.params), *session.settings.typed),
        **search.as_fields(),
        **more,
    )


def _between_releases(session: Session, asked: AskedFor, search: SearchOptions, chosen: ChosenCommand) -> Found:
    question = _question(session, asked, search, chosen, good=asked.good, bad=asked.bad)
    plan, answer = ask(session, question, search.depth, chosen.told)
    return Found(answer, ((plan, answer),))


def _between_commits(
    session: Session, asked: AskedFor, search: SearchOptions, chosen: ChosenCommand, ends: Ends
) -> Found:
    between = ask_commits(session, _question(session, asked, search, chosen), ends, chosen.told)
    return Found(between.answer, ((between.plan, between.answer),), between.commits)


def _between_worlds(
    session: Session, asked: AskedFor, search: SearchOptions, chosen: ChosenCommand, ends: Ends
) -> Found:
    about = normalized_name(asked.subject) if asked.subject else ""
    is_typed = click.get_current_context().get_parameter_source("depth") is ParameterSource.COMMANDLINE
    until = search.depth if is_typed or about else Level.RELEASE
    if search.git and not is_typed:
        until = Level.COMMIT
    below = Below(search.time_limit, fork=search.fork, git=search.git)
    question = UpgradeQuestion(ends, chosen.repro, chosen.with_, about, chosen.told, below)
    answer = ask_upgrade(session, question, until)
    return Found(answer, tuple(answer.answers))


def _reports(session: Session, found: Found) -> list[Path]:
    """Store the answer and write its reports; returns their paths."""
    pass_env = session.settings.pass_env
    kept = [keep_and_report(session.store, plan, answer, pass_env, found.commits) for plan, answer in found.parts]
    return [path for paths in kept for path in paths]


def _print(answer: Answer | UpgradeAnswer, results: str, reports: Iterable[Path], constraints: Path | None) -> None:
    if isinstance(answer, UpgradeAnswer):
        print_upgrade(answer, results)
    else:
        print_answer(Console(soft_wrap=True), answer, results)
    print_reports(reports)
    if constraints is not None:
        click.echo(f"  constraints: {short(constraints)}")
