"""The commands that write a repro: `new` from somebody's issue, `init` to start from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import click
from rich.text import Text

from harness.catalogue.blocks import read_report
from harness.catalogue.draft import Draft, draft
from harness.catalogue.tracebacks import first_line, frame_of, reason_of
from harness.cli.options import output_option
from harness.cli.output import write
from harness.errors import UserMistake
from harness.model.text import counted, listed, one_line
from harness.terminal.console import Console, print_line, print_text


@click.command()
@click.argument("issue")
@output_option("Where to write the repro [default: NAME.py, in repros/ if there is such a folder].")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def new(issue: str, file: Path | None, force: bool) -> None:
    """Write a repro from ISSUE, somebody's report: its versions, code and traceback, with a mark where one is missing.

    It takes lists of versions, code blocks and tracebacks; sentences are for you to read.

    ISSUE is a text or Markdown file, GitHub's JSON, - for standard input, or an issue that the gh program can reach.
    Nothing in it is run.

    \b
    harness new issue.md
    harness new huggingface/transformers#12345
    gh issue view 12345 --json title,body,url | harness new -
    """
    report = read_report(issue)
    drafted = draft(report, "" if report.repository else _stem(issue))
    versions = drafted.versions.installed or drafted.versions.several or drafted.versions.unreleased
    if not versions and drafted.raised is None and not drafted.script.code:
        raise UserMistake(
            "found no code, no traceback and no list of versions in it",
            hint="is it the text of the issue? sentences are not read, and a picture of a traceback can't be",
        )
    path = file or (Path("repros") if Path("repros").is_dir() else Path()) / f"{drafted.name}.py"
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
        console, Text.assemble(("wrote ", "bold green"), f"{path}, from what the report lists; nothing of it was run")
    )
    for name, text in _read(drafted):
        print_text(console, f"  {name:<10} {text}")
    for text in drafted.script.changes:
        print_text(console, f"  {'changed':<10} {text}")
    if drafted.script.code:
        print_text(console, "\nread this code of somebody else before you run it, and run it in the sandbox", "bold")
    if drafted.gaps:
        print_text(console, f"\nto fill in ({counted(len(drafted.gaps), 'gap')}), marked # FILL IN", "bold")
    for gap in drafted.gaps:
        print_text(console, f"  line {drafted.line_of(gap)}: {gap.what}: {gap.todo}")
    probe, *bisect = next_commands(path, drafted)
    print_text(console, "\nto see whether it fails as the report says", "bold")
    print_text(console, f"  {probe}")
    print_text(console, "\nif it does", "bold")
    for command in bisect:
        print_text(console, f"  {command}")


def next_commands(path: Path, drafted: Draft) -> tuple[str, ...]:
    """Return the commands to type next: one run, then bisections from the listed versions, if these fail."""
    place = shlex.quote(str(path))
    subject = drafted.subjects[0] if drafted.subjects else ""
    listed_version = drafted.versions.installed.get(subject)
    bad = f" --bad {listed_version}" if listed_version and drafted.script.header is None else ""
    bisect = [f"harness bisect {subject} --repro {place}{bad}"] if subject else []
    script = place if "/" in place else f"./{place}"
    return (f"harness probe {script}", f"harness bisect --repro {place}", *bisect)


def _read(drafted: Draft) -> Iterator[tuple[str, str]]:
    versions = drafted.versions
    if versions.installed:
        yield "versions", listed((f"{name} {version}" for name, version in versions.installed.items()), 12)
    if versions.python:
        yield "python", versions.python
    if drafted.raised is not None:
        reason = reason_of(drafted.raised)
        yield "signature", f"{reason.name}: {one_line(first_line(reason.message), _WIDTH)}"
        if (frame := frame_of(drafted.raised)) is not None:
            yield "raised in", f"{frame.file}, {frame.function}"
    if drafted.subjects:
        yield "subjects", ", ".join(drafted.subjects)


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@click.command()
@click.argument("kind", type=click.Choice(["repro", "matrix", "workflow"]))
@click.argument("name", required=False)
@click.option("--model", type=click.Choice(["llama", "whisper"]), help="A repro of a tiny random model, without a hub.")
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
def init(kind: str, name: str | None, model: str | None, force: bool) -> None:
    """Write a repro, a matrix or a GitHub workflow to start from.

    A repro and a matrix run as they stand; a workflow needs the repository and a commit of the harness.

    A repro goes to repros/NAME.py, a matrix to matrices/NAME.toml (with its repro, if there is none called NAME), a
    workflow to .github/workflows/NAME.yml.

    \b
    harness init repro
    harness init repro --model whisper
    harness init matrix mine
    harness init workflow
    """
    if model is not None and kind != "repro":
        raise UserMistake(f"--model is for a repro, not for a {kind}")
    name = name or model or {"repro": "example", "matrix": "example", "workflow": "newest-packages"}[kind]
    if not _NAME.fullmatch(name):
        raise UserMistake(f"{name!r} can't be the name of a file", hint="use letters, digits, - and _")
    files = dict(_files(kind, name, model))
    existing = [path for path in files if path.exists()]
    if existing and not force:
        raise UserMistake(f"{existing[0]} is there already", hint="give another name, or replace it with --force")
    for path, text in files.items():
        write(path, text)
        click.echo(f"wrote {path}")
    click.echo(f"next: {_next(kind, name, model)}")


def _files(kind: str, name: str, model: str | None) -> Iterator[tuple[Path, str]]:
    repro = Path("repros", f"{name}.py")
    if kind == "repro" or (kind == "matrix" and not repro.exists()):
        yield repro, _starter(f"{model or 'repro'}.py.txt")
    if kind == "matrix":
        path = Path("matrices", f"{name}.toml")
        yield path, _starter("matrix.toml").replace("@FILE@", str(path)).replace("@REPRO@", name)
    elif kind == "workflow":
        yield Path(".github", "workflows", f"{name}.yml"), _starter("workflow.yml")


_SKILL = "find-the-breaking-release"
_OF_SKILLS = (".claude/skills", ".agents/skills", ".github/skills")


@click.command()
@click.option("--install", is_flag=True, help="Write it to the folder of skills of this project instead.")
@click.option("--force", is_flag=True, help="Replace one that is there and was changed.")
def skill(install: bool, force: bool) -> None:
    """Print how a coding agent uses the harness, as a SKILL.md (agentskills.io).

    It says when to ask, how to make a repro from an issue, how to read an answer, and what not to claim. The folder of
    skills is the first of .claude/skills, .agents/skills and .github/skills that the project has, else .agents/skills.

    \b
    harness skill
    harness skill --install
    """
    text = _starter("SKILL.md")
    if not install:
        click.echo(text, nl=False)
        return
    folder = next((Path(name) for name in _OF_SKILLS if Path(name).is_dir()), Path(_OF_SKILLS[1]))
    path = folder / _SKILL / "SKILL.md"
    if path.exists() and path.read_text(encoding="utf-8") != text and not force:
        raise UserMistake(f"{path} is there already, and is another one", hint="--force replaces it")
    write(path, text)
    click.echo(f"wrote {path}")


def _starter(name: str) -> str:
    return resources.files("harness.cli").joinpath("starters", name).read_text(encoding="utf-8")


def _next(kind: str, name: str, model: str | None) -> str:
    repro = f"harness probe repros/{name}.py"
    return {
        "repro": repro if model is not None else f"harness bisect packaging --repro repros/{name}.py",
        "matrix": f"harness matrix matrices/{name}.toml --table",
        "workflow": "name the repository and a commit of the harness in it, and push; the Actions page starts a night",
    }[kind]
