"""`harness gate`: whether the update of a lock file passes, what broke it, and the part of it that passes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve

from harness.bisection.ask import looked_up
from harness.bisection.gate import Gate, GateResult, GateStatus
from harness.bisection.sections import sections_of
from harness.cli.options import (
    FILE,
    SectionCommand,
    end_option,
    option,
    repro_options,
)
from harness.cli.output import Output, output_options, print_or_write
from harness.cli.search_options import as_request, folder_options, gate_options, question_settings
from harness.errors import UserMistake
from harness.question.ends import Ends, parse_end
from harness.question.project import find_project
from harness.question.repros import required_python
from harness.question.request import QuestionKind, Request, refuse_meaningless
from harness.question.revisions import branched_at, file_at_revision, locks_of
from harness.redact import redacted
from harness.report.page import Page
from harness.report.privacy import private_of
from harness.session import open_session
from harness.terminal.stream import is_for_agent, last_line

if TYPE_CHECKING:
    from datetime import datetime

    from harness.model import Change
    from harness.question.commands import ChosenProject
    from harness.redact import Private
    from harness.settings import Settings

_EPILOG = """\b
Exit codes:
    0  the update passes
    1  the update is at fault: tests fail that pass with the base, or the head can't be installed
    3  not judged: the tests fail with the base, too, or only flaky tests fail, or it is not sure
  The others are those of every command.
"""


@click.command(cls=SectionCommand, epilog=_EPILOG)
@repro_options
@end_option(
    "--base",
    metavar="LOCK",
    help="The lock or requirements file before the update, such as uv.lock@main [default: the head's file, "
    "where its branch left the main one].",
)
@end_option("--head", metavar="LOCK", help="The same with the update [default: the lock that the branch changes].")
@folder_options
@gate_options
@option("Output", "--comment", type=FILE, metavar="FILE", help="Write the comment there instead of to stdout.")
@output_options("the result as JSON (schema 1)")
@question_settings
@as_request
def gate(
    request: Request, base: str | None, head: str | None, comment: Path | None, output: Output, settings: Settings
) -> None:
    """Run a project's tests with the update of its lock file; if they fail, find what broke them and what passes.

    It prints a comment for the pull request, as Markdown: the culprit with its evidence, and the largest part of the
    update that passes as a diff of the lock file, which a run has verified. Nothing is changed and nothing is sent.

    \b
    harness gate --run pytest
    harness gate --run pytest --base uv.lock@main --head uv.lock
    harness gate --run "python -m unittest" --base requirements.txt@HEAD^1 --comment comment.md
    """
    request = evolve(request, run=request.project.command(request.run))
    required = required_python(request.repro, request.run, None)
    with (
        output.reporting() as reporter,
        open_session(settings, reporter, requires_python=required) as session,
    ):
        ends, others = _ends_of(base, head, request.project, session.now)
        refuse_meaningless(request, settings, QuestionKind.PACKAGES, ends)
        session, question = looked_up(session, request, QuestionKind.PACKAGES, ends)
        result = Gate.of(session, question).run()
        notes = tuple(f"{path} has changed, too, and is not judged: --head {path} does" for path in others)
        result = evolve(result, notes=(*result.notes, *notes))
        text = comment_on(result, private_of(session.store))
    code = result.exit_code
    if comment is not None or output.is_for_people:
        print_or_write(text, comment)
    output.answer(result.as_json(), code, comment=comment)
    if output.is_for_people and is_for_agent():
        click.echo(last_line(result.status.value, code, comment))
    elif output.is_for_people and comment is not None:
        click.echo(result.sentence)
    sys.exit(code)


def _ends_of(base: str | None, head: str | None, project: ChosenProject, now: datetime) -> tuple[Ends, tuple[str, ...]]:
    """Return the base and the head, and the other locks of the project that its branch changes."""
    others: tuple[str, ...] = ()
    newer = parse_end(head, "--head", now=now) if head is not None else None
    if newer is not None:
        paths = [newer.path if newer.path is not None else Path(newer.text)]
    elif base is not None and (named := file_at_revision(base)) is not None:
        paths = [named[0]]
    else:
        root = project.folder or find_project(Path.cwd()) or Path.cwd()
        paths = [Path(os.path.relpath(path)) for path in locks_of(root)]
        if not paths:
            raise UserMistake(f"{root} has no lock file that is known", hint="name one with --head")
    if base is None:
        commit, changed = branched_at(paths, os.environ.get("GITHUB_BASE_REF", ""))
        path, *rest = changed or paths[:1]
        base, others = f"{path}@{commit.short}", tuple(map(str, rest))
    else:
        path = paths[0]
    newer = newer or parse_end(str(path), "--head", now=now)
    return Ends(parse_end(base, "--base", now=now), newer), others


def comment_on(result: GateResult, private: Private) -> str:
    """Return the comment on a pull request as Markdown, without private data of this machine.

    The diff stays as it is: the repository has its lines already.
    """
    part, answer = result.part, redacted(result.answer, private)
    content = {
        "result": redacted(evolve(result, answer=None), private),
        "held": [held_in_words(change) for change in part.held] if part is not None else [],
        "diff": part.diff if part is not None else "",
        "file": result.question.bad.text if result.question.bad is not None else "",
        "sections": [
            evolve(section, is_folded=section.is_folded or section.title == "The search")
            for section in (sections_of(answer) if answer is not None else ())
            if section.rows
        ],
        "command": redacted(result.command, private) if result.status is not GateStatus.PASSES else "",
    }
    return Page("gate", content).markdown()


def held_in_words(change: Change) -> str:
    """Say what becomes of a package whose change is held back."""
    if change.before is None:
        return f"{change.name} is left out"
    return f"{change.name} stays at {change.before}" if change.after is not None else f"{change.name} is not removed"
