"""The commands that write a repro: `new` from somebody's issue, `minimize` from a larger one, `init` to start from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import click
from attrs import evolve
from rich.text import Text

from harness.cli.options import output_option, settings_options
from harness.cli.written import write
from harness.drafting.draft import Draft, draft
from harness.drafting.smaller import Smaller, removed
from harness.drafting.source import read_report
from harness.drafting.tracebacks import first_line, frame_of, reason_of
from harness.errors import Interrupted, UserMistake
from harness.model import Verdict
from harness.model.repro import parse_repro
from harness.model.text import counted, listed, one_line
from harness.planning.given import Giver
from harness.planning.single import executed, prepared_probe
from harness.probing import Judge, Probe
from harness.request.repros import chosen_repro, required_python
from harness.session import local_session
from harness.settings import OptionGroup, Settings
from harness.terminal.console import Console, print_line, print_text
from harness.terminal.live import WarningsOnly


@click.command()
@click.argument("issue")
@output_option("Where to write the repro [default: NAME.py, in repros/ if there is such a folder].")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def new(issue: str, output: Path | None, force: bool) -> None:
    """Write a repro from ISSUE, somebody's report: versions, code, traceback and what is missing.

    ISSUE is a text or Markdown file, GitHub's JSON, - for standard input, or an issue that the gh program can reach.
    Nothing in it is run.

    \b
    harness new issue.md
    harness new huggingface/transformers#12345
    gh issue view 12345 --json title,body,comments,url | harness new -
    """
    report = read_report(issue)
    drafted = draft(report, "" if report.repository else _stem(issue))
    if not drafted.told.installed and drafted.raised is None and not drafted.script.code:
        raise UserMistake(
            "found no code, no traceback and no versions in it",
            hint="is it the text of the issue? a picture of a traceback can't be read",
        )
    path = output or (Path("repros") if Path("repros").is_dir() else Path()) / f"{drafted.name}.py"
    if path.exists() and not force:
        raise UserMistake(f"{path} is there already", hint="--force overwrites it, --output FILE names another")
    write(path, drafted.source)
    print_draft(Console(soft_wrap=True), drafted, path)


def _stem(issue: str) -> str:
    return "" if issue == "-" else re.sub(r"\W+", "_", Path(issue).stem).strip("_").lower()


_WIDTH = 100


def print_draft(console: Console, drafted: Draft, path: Path) -> None:
    """Print what was read, the file, its gaps, and the next commands."""
    for number, line in enumerate(drafted.source.splitlines(), start=1):
        print_line(console, Text.assemble((f"{number:4} ", "dim"), line))
    console.print()
    print_text(
        console, Text.assemble(("wrote ", "bold green"), f"{path}, from what the report says; nothing of it was run")
    )
    for name, text in _read(drafted):
        print_text(console, f"  {name:<10} {text}")
    for text in (*drafted.stand_ins.replaced, *drafted.script.changes):
        print_text(console, f"  {'changed':<10} {text}")
    if drafted.script.code:
        print_text(console, "\nread this code of somebody else before you run it, and run it in the sandbox", "bold")
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
    script = place if "/" in place else f"./{place}"
    return (f"harness probe {script}", f"harness bisect --repro {place}", *bisect)


def _read(drafted: Draft) -> Iterator[tuple[str, str]]:
    told = drafted.told
    if told.installed:
        yield "versions", listed((f"{name} {version}" for name, version in told.installed.items()), 12)
    if told.python:
        yield "python", told.python
    if drafted.raised is not None:
        one = reason_of(drafted.raised)
        yield "signature", f"{one.name}: {one_line(first_line(one.message), _WIDTH)}"
        if (frame := frame_of(drafted.raised)) is not None:
            yield "raised in", f"{frame.file}, {frame.function}"
    if drafted.subjects:
        yield "subjects", ", ".join(drafted.subjects)


@click.command()
@click.argument("repro")
@output_option("Where to write the smaller repro [default: NAME_min.py beside it].")
@settings_options(OptionGroup.QUESTION, OptionGroup.RUNS, OptionGroup.LIMITS)
def minimize(repro: str, output: Path | None, settings: Settings) -> None:
    """Make REPRO smaller while it still fails by its signature.

    Statements are taken out, outer ones first; each candidate runs in one environment, built once. Ctrl-C keeps the
    smallest so far.

    \b
    harness minimize repros/mine.py
    harness minimize repros/mine.py --with transformers==4.53.0 --output small.py
    """
    console = Console(stderr=True)
    session = local_session(settings, WarningsOnly(console), requires_python=required_python(repro, None, None))
    found = chosen_repro(repro, None, None, settings.params, settings.timeout)
    if found.signature is None:
        raise UserMistake(
            f"{found.name} has no signature, so a smaller one could fail for another reason",
            hint="add [tool.harness.signature] with its exception and message",
        )
    prepared = prepared_probe(session, found)
    first = executed(session, prepared)
    lock = first.observation.lock
    if first.judgement is None or first.judgement.verdict is not Verdict.BAD or lock is None:
        reason = first.judgement.reason if first.judgement is not None else first.observation.detail
        raise UserMistake(
            f"{found.name} does not show its bug here: {reason}",
            hint="--with PACKAGE==VERSION runs it with a release that does",
        )
    judge = Judge(found.signature, session.store)
    path = output or Path(found.path).with_name(f"{Path(found.path).stem}_min.py")

    giver, combination = Giver(session.local, session.index), prepared.probe.combination

    def judged(source: str) -> Verdict:
        smaller = parse_repro(source, name=found.name, path=found.path).with_params(found.params).within(found.timeout)
        # A smaller first step must still write what the smaller reader fails to read.
        smaller = giver.given_if_made(smaller, combination, settings.as_of, settings.made_with)
        probe = Probe(evolve(smaller, signature=found.signature), combination)
        return judge(session.local.execute(session.local.prepare_lock(probe, lock))).verdict

    search = Smaller(found.source, judged)
    try:
        search.reduce(lambda words: print_text(console, f"  {words}"))
    except (KeyboardInterrupt, Interrupted) as error:
        write(path, search.source)
        raise Interrupted(f"stopped; the smallest so far is in {path}") from error
    write(path, search.source)
    shown = Console(soft_wrap=True)
    for line in removed(found.source, search.source):
        print_text(shown, line, {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], ""))
    before, after = len(found.source.splitlines()), len(search.source.splitlines())
    print_text(shown, f"wrote {path}: {after} of {counted(before, 'line')}, {counted(search.runs, 'run')}")
    print_text(shown, f"  harness probe {shlex.quote(str(path))}")


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@click.command()
@click.argument("kind", type=click.Choice(["repro", "matrix", "workflow"]))
@click.argument("name", required=False)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
def init(kind: str, name: str | None, force: bool) -> None:
    """Write a repro, a matrix or a GitHub workflow to start from.

    A repro and a matrix run as they stand; a workflow needs the repository and a commit of the harness.

    A repro goes to repros/NAME.py, a matrix to matrices/NAME.toml (with its repro, if there is none called NAME), a
    workflow to .github/workflows/NAME.yml.

    \b
    harness init repro
    harness init matrix mine
    harness init workflow
    """
    name = name or {"repro": "example", "matrix": "example", "workflow": "newest-packages"}[kind]
    if not _NAME.fullmatch(name):
        raise UserMistake(f"{name!r} can't be the name of a file", hint="use letters, digits, - and _")
    files = dict(_files(kind, name))
    existing = [path for path in files if path.exists()]
    if existing and not force:
        raise UserMistake(f"{existing[0]} is there already", hint="give another name, or replace it with --force")
    for path, text in files.items():
        write(path, text)
        click.echo(f"wrote {path}")
    click.echo(f"next: {_next(kind, name)}")


def _files(kind: str, name: str) -> Iterator[tuple[Path, str]]:
    repro = Path("repros", f"{name}.py")
    if kind == "repro" or (kind == "matrix" and not repro.exists()):
        yield repro, _starter("repro.py.txt")
    if kind == "matrix":
        path = Path("matrices", f"{name}.toml")
        yield path, _starter("matrix.toml").replace("@FILE@", str(path)).replace("@REPRO@", name)
    elif kind == "workflow":
        yield Path(".github", "workflows", f"{name}.yml"), _starter("workflow.yml")


def _starter(name: str) -> str:
    return resources.files("harness.cli").joinpath("starters", name).read_text(encoding="utf-8")


def _next(kind: str, name: str) -> str:
    return {
        "repro": f"harness bisect packaging --repro repros/{name}.py",
        "matrix": f"harness matrix matrices/{name}.toml --table",
        "workflow": "name the repository and a commit of the harness in it, and push; the Actions page starts a night",
    }[kind]
