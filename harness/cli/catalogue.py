"""`harness repros` shows the catalogue of known regressions; `harness match` looks a traceback up in it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from harness.catalogue.entries import Entry, all_entries, found_entries, lines_of
from harness.catalogue.matching import Match, exceptions_in, matches, version_in
from harness.cli.options import json_option
from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.text import one_line, picked, to_json
from harness.request.lockfiles import installed_pins
from harness.request.question import EndKind, parse_end

_FOUND, _NONE, _NOT_AFFECTED = 0, 1, 3
_SHOWN = 3
_LONGEST = 16 * 1024 * 1024  # characters of a log, from its end


@click.command()
@click.argument("words", nargs=-1)
@json_option("the entries as JSON")
def repros(words: tuple[str, ...], as_json: bool) -> None:
    """List the known regressions of the catalogue, or those with all WORDS: of a package, a symptom, an error message.

    With the name of one, or if only one is left, it shows what broke, since when, in which lines, and the workaround.

    \b
    harness repros
    harness repros numpy
    harness repros unexpected keyword tokenizer
    harness repros trainer_tokenizer
    """
    found = found_entries(words)
    if as_json:
        click.echo(to_json({"schema": 1, "entries": [_as_json(entry) for entry in found]}))
    elif len(found) == 1:
        click.echo("\n".join(_described(found[0])))
    else:
        width = max(len(entry.name) for entry in found)
        for entry in found:
            click.echo(f"{entry.name:{width}}  {one_line(entry.repro.summary, 140)}")
        click.echo(f"\n{len(found)} known regressions; harness repros NAME shows one")


@click.command()
@click.argument("log", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--python", metavar="PATH", help="Take the installed versions of this Python or environment, not the log's."
)
@json_option("what was found as JSON")
def match(log: Path, python: str | None, as_json: bool) -> None:
    """Say which known regression the traceback in LOG (a file, or - for stdin) looks like.

    Compares the exceptions in the log with those of the catalogue: type, message without numbers and paths, and frames.
    Says whether the installed versions have the bug, what fixed it, and what works around it. Nothing is run.

    Exit codes: 0 it looks like one, 1 like none, 3 it looks like one, but the installed version doesn't have it.

    \b
    harness match train.log
    pytest 2>&1 | harness match -
    harness match train.log --python ~/venv
    """
    text = _read(log)
    pins = _pins(python) if python else {}

    def version_of(project: str) -> str | None:
        return pins.get(project) if python else version_in(text, project)

    raised = exceptions_in(text)
    if not raised:
        raise UserMistake(f"no exception in {'stdin' if str(log) == '-' else log}", hint="give it the whole traceback")
    found = matches(raised, all_entries(), version_of)[:_SHOWN]
    if as_json:
        click.echo(to_json({"schema": 1, "matches": [_match_as_json(one) for one in found]}))
    elif not found:
        click.echo("no known regression looks like this; harness bisect finds what broke it")
    else:
        click.echo("\n".join([_installed(found[0]), *_described(found[0].entry)]))
        if len(found) > 1:
            click.echo(f"less like it: {', '.join(one.entry.name for one in found[1:])}")
    sys.exit(_NONE if not found else _NOT_AFFECTED if found[0].is_affected is False else _FOUND)


def _pins(python: str) -> dict[str, str]:
    """The installed versions by project. Raises `UserMistake`."""
    end = parse_end(python, "--python", now=datetime.now(UTC))
    if end.kind is not EndKind.PYTHON or end.path is None:
        raise UserMistake(f"--python {python} is not a Python", hint="give the folder of an environment, or its python")
    exact = (text.split("==") for text in installed_pins(end.path).requirements)
    return {normalized_name(words[0]): words[1] for words in exact if len(words) == 2}


def _read(log: Path) -> str:
    try:
        with click.open_file(str(log), encoding="utf-8", errors="replace") as file:
            return str(file.read())[-_LONGEST:]
    except OSError as error:
        raise UserMistake(f"can't read {log}: {error.strerror}") from error


def _described(entry: Entry) -> list[str]:
    head = f"{entry.name}: {entry.repro.summary}"
    return [head, *(f"  {label}: {text}" for label, text in lines_of(entry))]


def _installed(found: Match) -> str:
    lead = f"looks like a known regression of {found.entry.subject}"
    if found.version is None:
        return f"{lead}; its version here is not known"
    return f"{lead}: {found.version} has it" if found.is_affected else f"{lead}, but {found.version} does not have it"


def _as_json(entry: Entry) -> dict[str, Any]:
    known = entry.known
    return {
        **picked(entry, "name subject"),
        "summary": entry.repro.summary,
        **picked(known, "kind last_good first_bad last_bad fixed_in never_worked"),
        **{name: told or None for name, told in picked(known, "file function fix workaround").items()},
        "upstream": list(known.upstream),
        "command": " ".join(("harness", *entry.command)),
    }


def _match_as_json(found: Match) -> dict[str, Any]:
    told = {"likeness": round(found.likeness, 3), "installed": found.version, "affected": found.is_affected}
    return {**_as_json(found.entry), **told, "exception": found.raised.type, "message": found.raised.message}
