"""`harness gate`: whether the update of a lock file passes, what broke it, and the part of it that passes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from harness.arguments import OptionGroup
from harness.bisection.ask import looked_up
from harness.cli.options import (
    FILE,
    SectionCommand,
    end_option,
    json_option,
    lines_option,
    option,
    repro_options,
    settings_options,
)
from harness.cli.search_options import folder_options, gate_options
from harness.cli.written import print_or_write
from harness.errors import UserMistake
from harness.model.text import to_json
from harness.question.ends import Ends, parse_end
from harness.question.project import find_project
from harness.question.repros import required_python
from harness.question.request import QuestionKind, Request, refuse_meaningless
from harness.question.revisions import branched_at, file_at_revision, locks_of
from harness.report.privacy import private_of
from harness.session import open_session
from harness.terminal import reporting
from harness.terminal.console import Console
from harness.terminal.stream import is_for_agent, last_line
from harness.watch.gate import Gate

if TYPE_CHECKING:
    from datetime import datetime

    from harness.question.commands import ChosenProject
    from harness.question.request import Policy
    from harness.settings import Settings
    from harness.terminal.stream import JsonLines

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
@json_option("the result as JSON (schema 1)")
@lines_option
@settings_options(OptionGroup.LANES, OptionGroup.QUESTION, OptionGroup.RUNS, OptionGroup.LIMITS)
def gate(
    base: str | None,
    head: str | None,
    project: ChosenProject,
    comment: Path | None,
    policy: Policy,
    as_json: bool,
    lines: JsonLines | None,
    settings: Settings,
    **parts: Any,
) -> None:
    """Run a project's tests with the update of its lock file; if they fail, find what broke them and what passes.

    It prints a comment for the pull request, as Markdown: the culprit with its evidence, and the largest part of the
    update that passes as a diff of the lock file, which a run has verified. Nothing is changed and nothing is sent.

    \b
    harness gate --run pytest
    harness gate --run pytest --base uv.lock@main --head uv.lock
    harness gate --run "python -m unittest" --base requirements.txt@HEAD^1 --comment comment.md
    """
    parts["run"] = project.command(parts["run"])
    required = required_python(parts["repro"], parts["run"], None)
    with (
        reporting(Console(stderr=True), quiet=as_json, lines=lines) as reporter,
        open_session(settings, reporter, requires_python=required) as session,
    ):
        ends, others = _ends_of(base, head, project, session.now)
        request = Request(**parts, policy=policy, project=project)
        refuse_meaningless(request, settings, QuestionKind.PACKAGES, ends)
        session, question = looked_up(session, request, QuestionKind.PACKAGES, ends)
        result = Gate.of(session, question).run()
        notes = tuple(f"{path} has changed, too, and is not judged: --head {path} does" for path in others)
        result = evolve(result, notes=(*result.notes, *notes))
        page = result.page(private_of(session.store)).markdown()
    code = result.status.exit_code
    if comment is not None or not (as_json or lines is not None):
        print_or_write(page, comment)
    if lines is not None:
        lines.answered(result.as_json(), code, {"comment": comment})
    elif as_json:
        click.echo(to_json(result.as_json()))
    elif is_for_agent():
        click.echo(last_line(result.status.value, code, comment))
    elif comment is not None:
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
