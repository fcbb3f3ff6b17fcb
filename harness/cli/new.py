"""`harness new`: drafts a repro from somebody's issue, and runs nothing of it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from harness.cli.written import write
from harness.drafting.draft import Draft, draft
from harness.drafting.source import Report, read_report
from harness.drafting.tracebacks import stable_part
from harness.errors import UserMistake
from harness.model.text import counted, listed, one_line, to_json
from harness.terminal.console import Console, print_line, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator


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


_WIDTH = 100


def print_draft(console: Console, drafted: Draft, path: Path) -> None:
    """Print what was read, the file, its risks and gaps, and the next commands."""
    for number, line in enumerate(drafted.source.splitlines(), start=1):
        print_line(console, Text.assemble((f"{number:4} ", "dim"), line))
    console.print()
    print_text(
        console, Text.assemble(("wrote ", "bold green"), f"{path}, from what the report says; nothing of it was run")
    )
    for name, text in _read(drafted):
        print_text(console, f"  {name:<10} {text}")
    for text in (*drafted.stand_ins.replaced, *drafted.changes):
        print_text(console, f"  {'changed':<10} {text}")
    if drafted.hazards:
        print_text(
            console, f"\nrisky in it ({counted(len(drafted.hazards), 'line')}); read these before you run it", "bold"
        )
    for hazard in drafted.hazards:
        print_text(console, f"  line {hazard.line}: {hazard.what}: {one_line(hazard.code, _WIDTH)}")
    if drafted.gaps:
        print_text(console, f"\nto fill in ({counted(len(drafted.gaps), 'gap')}), marked # FILL IN", "bold")
    for gap in drafted.gaps:
        print_text(console, f"  line {drafted.line_of(gap)}: {gap.what}: {gap.todo}")
    print_text(console, "\nto go on", "bold")
    for command in next_commands(path, drafted):
        print_text(console, f"  {command}")


def next_commands(path: Path, drafted: Draft) -> tuple[str, ...]:
    """Return the commands to type next: one run, then a bisection."""
    place = shlex.quote(str(path))
    subject = drafted.subjects[0] if drafted.subjects else ""
    bisect = [f"harness bisect {subject} --repro {place}"] if subject else []
    return (f"harness probe ./{place}" if "/" not in place else f"harness probe {place}",
            f"harness bisect --repro {place}", *bisect)  # fmt: skip


def _read(drafted: Draft) -> Iterator[tuple[str, str]]:
    told = drafted.told
    installed = {name: told.installed[name] for name in told.installed}
    if installed:
        yield "versions", listed((f"{name} {version}" for name, version in installed.items()), 12)
    if told.python:
        yield "python", told.python
    if drafted.raised is not None:
        one = drafted.raised.told
        yield "signature", f"{one.name}: {one_line(stable_part(one.message) or one.message, _WIDTH)}"
        if (frame := drafted.raised.frame) is not None:
            yield "raised in", f"{frame.short}, {frame.function}"
    if drafted.subjects:
        yield "subjects", ", ".join(drafted.subjects)
