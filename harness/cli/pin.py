"""`harness pin`: the newest set of packages with which a command passes, as what to type."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from attrs import asdict, frozen

from harness.api import reported_answer
from harness.bisection.answer import Answer, Status
from harness.bisection.declared_bounds import proved_bounds
from harness.bisection.wording import contradicted
from harness.cli.options import (
    SectionCommand,
    output_option,
    repro_argument,
)
from harness.cli.output import Output, output_options, print_or_write
from harness.cli.search_options import as_request, project_options, question_settings
from harness.errors import UserMistake
from harness.model import Lock, Outcome, name_of
from harness.model.text import counted, listed, picked
from harness.question.project import find_project
from harness.question.project_requirements import options_of_uv_add
from harness.question.request import Request
from harness.report.archive import Archive
from harness.report.commands import constraints_text, exact_pins, install_commands, required_names
from harness.settings import Settings
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping


_NOT_SURE = 3
_OWN = "the declared ones"


@frozen
class Pinned:
    """A set of packages with which it passed: its lock, a sentence, and the constraints that are enough for it.

    `is_newest` is false if only an older set is known to pass.
    """

    lock: Lock
    sentence: str
    constraints: tuple[str, ...] = ()
    is_newest: bool = True


@click.command(cls=SectionCommand)
@repro_argument(required=False)
@click.option("--run", metavar="COMMAND", help="Command to run instead of a repro.")
@click.option("--good", metavar="DAY", help="A day on which it worked [default: steps back].")
@click.option("--bad", metavar="DAY", help="A day on which it fails [default: today].")
@click.option(
    "--format",
    "style",
    type=click.Choice(["uv", "pip", "constraints"]),
    help="uv add, pip install, or a constraints file with every package [default: uv, in a project, else pip].",
)
@click.option("--exact", is_flag=True, help="The version of each required package, not only what must be held back.")
@click.option(
    "--prove",
    "declared",
    metavar="REQ",
    is_flag=False,
    flag_value=_OWN,
    multiple=True,
    help="Run the lowest and the highest release that a requirement allows, of each that is declared without REQ.",
)
@output_option("Write there instead of to stdout.")
@project_options
@output_options("the set, or with --prove the bounds, as JSON")
@question_settings
@as_request
def pin(
    request: Request,
    style: str | None,
    exact: bool,
    declared: tuple[str, ...],
    file: Path | None,
    constraints: Path | None,
    output: Output,
    settings: Settings,
) -> None:
    """Print the newest set of packages with which REPRO, or a command, passes; without either, that of the last answer.

    If it passes with today's newest packages, that is the set. Else it finds what broke it, as harness bisect does, and
    prints the loosest constraints that hold that back, which a run has confirmed. Only -o changes a file.

    With --prove it tells which declared bound is untrue, and which would be true: with exit code 1 if one is.

    \b
    harness pin
    harness pin --run pytest
    harness pin mine.py --format pip
    harness pin --run pytest --format constraints -o constraints.txt
    harness pin --run pytest --prove "transformers>=4.51,<5"
    harness pin --run pytest --prove
    """
    if constraints is not None:
        raise UserMistake("--constraints goes with harness bisect", hint=f"--format constraints -o {constraints}")
    if declared:
        _prove(request, declared, settings, output)
    tell = partial(click.echo, err=True) if output.is_for_people else _nothing
    project = request.project
    if request.run or request.repro or project.from_junit:
        with output.reporting() as reporter:
            answer, _ = reported_answer(request, settings, reporter)
    elif request.good or request.bad:
        raise UserMistake("say what has to pass", hint='name a repro, or give a command with --run "COMMAND"')
    else:
        stored = Archive(Store.opened(settings.results)).get()
        answer = stored.answer
        tell(f"the answer of {stored.kept[:10]} for {stored.repro.name}")
    newest = pinned(answer)
    tell(f"\n{newest.sentence}")
    if newest.constraints and not exact and style != "constraints":
        tell("  --exact prints the version of each required package")
    root = project.folder or find_project(Path.cwd())
    is_package = root is not None and (root / "pyproject.toml").is_file()
    style = style or ("uv" if is_package else "pip")
    options = options_of_uv_add(root) if root is not None and style == "uv" and answer.question.repro.argv else {}
    text = written(newest, answer, style, options, exact=exact)
    if file is not None or output.is_for_people:
        print_or_write(text if text.endswith("\n") else f"{text}\n", file)
    if file is not None:
        tell(f"  written to {file}")
    packages = {pin.name: pin.version for pin in newest.lock.pins}
    code = 0 if newest.is_newest else _NOT_SURE
    document = {**picked(newest, "sentence is_newest constraints"), "packages": packages, "text": text}
    output.answer(document, code, output=file)
    sys.exit(code)


def _nothing(_text: str) -> None:
    """Leave out what is for people."""


def _prove(request: Request, declared: tuple[str, ...], settings: Settings, output: Output) -> NoReturn:
    """Print which declared bounds are true, and exit: 1 if one is not, 3 if one could not be judged."""
    if request.good or request.bad:
        raise UserMistake("--good and --bad do not apply to --prove", hint="a requirement names its ends itself")
    if not (request.run or request.repro):
        raise UserMistake("say what has to pass", hint='name a repro, or give a command with --run "COMMAND"')
    with output.reporting() as reporter:
        bounds = proved_bounds(request, [text for text in declared if text != _OWN], settings, reporter)
    if output.is_for_people:
        click.echo()
    for bound in bounds if output.is_for_people else ():
        word = {True: "true", False: "untrue", None: "not sure"}[bound.is_true]
        instead = f"; true is {bound.instead}" if bound.instead else ""
        click.echo(f"{word:<8}  {bound.requirement}  {bound.sentence}{instead}")
    results = {bound.is_true for bound in bounds}
    code = 1 if False in results else _NOT_SURE if None in results else 0
    output.answer({"bounds": [asdict(bound) for bound in bounds]}, code)
    sys.exit(code)


def pinned(answer: Answer) -> Pinned:
    """The newest set with which it is known to pass. Raises `UserMistake` if it never passed."""
    ends = answer.comparison.runs
    if answer.status is Status.NO_FAILURE and ends and ends[-1].lock is not None:
        return Pinned(ends[-1].lock, "it passes with today's newest packages; nothing has to be held back")
    run = answer.verified_by
    if run is not None and run.lock is not None:
        broke = ", ".join(culprit.named for culprit in answer.culprits)
        failing = answer.comparison.failing_at_both
        packages, unmet = f"the newest packages and {', '.join(answer.constraints)}", contradicted(answer)
        passed = f"a run with them passed{f', without {listed(unmet)}' if unmet else ''}"
        sentence = f"it passes with {packages} ({passed}); {broke} broke it"
        if failing:
            fail = f"{counted(len(failing), 'test')} {'fails' if len(failing) == 1 else 'fail'}"
            sentence = f"nothing newly fails with {packages} ({fail} with older packages, too); {broke} broke it"
        # A requirement of another package has to make room, too.
        others = {name_of(text) for text in unmet} - {name_of(text) for text in answer.constraints}
        return Pinned(run.lock, sentence, (*answer.constraints, *exact_pins(run.lock, others)))
    passing = next((end for end in ends[:1] if end.outcome is Outcome.COMPLETED and end.lock is not None), None)
    if passing is not None and passing.lock is not None and answer.status is not Status.NOT_A_REGRESSION:
        good = (answer.question.ends.get("good") or {}).get("text") or "the good end"
        sentence = (
            f"these are the packages of {good}, with which it passed; no newer set is known to: {answer.sentence}"
        )
        return Pinned(passing.lock, sentence, is_newest=False)
    hint = answer.advice or "--good DAY names a day on which it worked"
    raise UserMistake(f"no set of packages is known with which it passes: {answer.sentence}", hint=hint)


def written(
    newest: Pinned, answer: Answer, style: str, options: Mapping[str, tuple[str, ...]], *, exact: bool = False
) -> str:
    """The set as commands or as a constraints file. `options` of `uv add` are by name.

    With `exact`, or if no constraint is enough, the commands name the version of what is required, and of the culprits.
    """
    if style == "constraints":
        return constraints_text(newest.lock, newest.sentence)
    record, requirements = answer.question, newest.constraints
    if exact or not requirements:
        names = required_names([*record.repro.dependencies, *record.requirements, *newest.constraints])
        requirements = exact_pins(newest.lock, names)
    return install_commands(("uv", "add") if style == "uv" else ("pip", "install"), requirements, options)
