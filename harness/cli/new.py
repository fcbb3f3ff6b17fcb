"""`harness new`: drafts a repro from somebody's issue, and runs nothing of it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from harness.cli.written import write
from harness.drafting.draft import Draft, draft
from harness.drafting.source import Report, read_report
from harness.errors import UserMistake
from harness.model.text import to_json
from harness.terminal.console import Console
from harness.terminal.draft import next_commands, print_draft


@click.command()
@click.argument("issue")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the repro [default: NAME.py, in repros/ if there is such a folder].",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option(
    "--keep-downloads", is_flag=True, help="Keep models and data of a hub, instead of tiny and generated ones."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was read as JSON.")
def new(issue: str, output: Path | None, force: bool, keep_downloads: bool, as_json: bool) -> None:
    """Write a repro from ISSUE, somebody's report: versions, code, traceback and what is missing.

    ISSUE is a text or Markdown file, GitHub's JSON, - for standard input, or an issue that the gh program can reach.
    Nothing in it is run.

    \b
    harness new issue.md
    harness new huggingface/transformers#12345
    gh issue view 12345 --json title,body,comments,url | harness new -
    """
    report = read_report(issue)
    drafted = draft(report, "" if report.repository else _stem(issue), stand_ins=not keep_downloads)
    if not drafted.told.installed and drafted.raised is None and (drafted.script is None or not drafted.script.code):
        raise UserMistake(
            "found no code, no traceback and no versions in it",
            hint="is it the text of the issue? a picture of a traceback can't be read",
        )
    path = output or (Path("repros") if Path("repros").is_dir() else Path()) / f"{drafted.name}.py"
    if path.exists() and not force:
        raise UserMistake(f"{path} is there already", hint="--force overwrites it, --output FILE names another")
    write(path, drafted.source)
    if as_json:
        click.echo(to_json(_as_json(drafted, report, path)))
    else:
        print_draft(Console(soft_wrap=True), drafted, path)


def _stem(issue: str) -> str:
    return "" if issue == "-" else re.sub(r"\W+", "_", Path(issue).stem).strip("_").lower()


def _as_json(drafted: Draft, report: Report, path: Path) -> dict[str, object]:
    raised = drafted.raised.told if drafted.raised is not None else None
    return {
        "schema": 1,
        "repro": str(path),
        "report": report.link or None,
        "versions": drafted.told.installed,
        "unreleased": drafted.told.unreleased,
        "python": drafted.told.python,
        "subjects": drafted.subjects,
        "exception": {"type": raised.name, "message": raised.message} if raised is not None else None,
        "replaced": drafted.stand_ins.replaced,
        "risky": [{"line": one.line, "what": one.what, "code": one.code} for one in drafted.hazards],
        "gaps": [{"line": drafted.line_of(one), "what": one.what, "todo": one.todo} for one in drafted.gaps],
        "next": next_commands(path, drafted),
    }
