"""`harness repros` shows the catalogue of known regressions; `harness match` looks a traceback up in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.catalogue.entries import Entry, all_entries, entries_with, lines_of
from harness.catalogue.matching import Match, exceptions_in, installed_in, matches
from harness.cli.options import complete_repros, json_option
from harness.errors import UserMistake
from harness.model.text import one_line, to_json

_FOUND, _NONE, _NOT_AFFECTED = 0, 1, 3
_SHOWN = 3
_LONGEST = 16 * 1024 * 1024  # characters of a log, from its end


@click.command()
@click.argument("words", nargs=-1, shell_complete=complete_repros)
@json_option("a list of them as JSON")
def repros(words: tuple[str, ...], as_json: bool) -> None:
    """List the known regressions of the catalogue, or those with all WORDS: of a package, a symptom, an error message.

    With the name of one, or if only one is left, it shows what broke, since when, in which lines, and the workaround.

    \b
    harness repros
    harness repros numpy
    harness repros unexpected keyword tokenizer
    harness repros trainer_tokenizer
    """
    entries = entries_with(words)
    if as_json:
        click.echo(to_json([_as_json(entry) for entry in entries]))
    elif len(entries) == 1:
        click.echo("\n".join(_described(entries[0])))
    else:
        width = max(len(entry.name) for entry in entries)
        for entry in entries:
            click.echo(f"{entry.name:{width}}  {one_line(entry.repro.summary, 140)}")
        click.echo(f"\n{len(entries)} known regressions; harness repros NAME shows one")


@click.command()
@click.argument("log", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@json_option("a list of those that it looks like as JSON, the likeliest first")
def match(log: Path, as_json: bool) -> None:
    """Say which known regression the traceback in LOG (a file, or - for stdin) looks like.

    Compares the exceptions in the log with those of the catalogue: type, message without numbers and paths, and frames.
    Says whether the installed versions have the bug, what fixed it, and what works around it. Nothing is run.

    Exit codes: 0 it looks like one, 1 like none, 3 it looks like one, but the installed version doesn't have it.

    \b
    harness match train.log
    pytest 2>&1 | harness match -
    pip freeze | cat - train.log | harness match -
    """
    text = _read(log)
    raised = exceptions_in(text)
    if not raised:
        raise UserMistake(f"no exception in {'stdin' if str(log) == '-' else log}", hint="give it the whole traceback")
    candidates = matches(raised, all_entries(), installed_in(text).get)[:_SHOWN]
    if as_json:
        rows = (
            {**_as_json(known.entry), "installed": known.version, "affected": known.is_affected} for known in candidates
        )
        click.echo(to_json(list(rows)))
    elif not candidates:
        click.echo("no known regression looks like this; harness bisect finds what broke it")
    else:
        click.echo("\n".join([_installed(candidates[0]), *_described(candidates[0].entry)]))
        if len(candidates) > 1:
            click.echo(f"less like it: {', '.join(other.entry.name for other in candidates[1:])}")
    sys.exit(_NONE if not candidates else _NOT_AFFECTED if candidates[0].is_affected is False else _FOUND)


def _read(log: Path) -> str:
    try:
        with click.open_file(str(log), encoding="utf-8", errors="replace") as file:
            return str(file.read())[-_LONGEST:]
    except OSError as error:
        raise UserMistake(f"can't read {log}: {error.strerror}") from error


def _as_json(entry: Entry) -> dict[str, Any]:
    """An entry with what `harness repros NAME` shows of it."""
    return {"name": entry.name, "package": entry.subject, "summary": entry.repro.summary, **dict(lines_of(entry))}


def _described(entry: Entry) -> list[str]:
    head = f"{entry.name}: {entry.repro.summary}"
    return [head, *(f"  {label}: {text}" for label, text in lines_of(entry))]


def _installed(known: Match) -> str:
    lead = f"looks like a known regression of {known.entry.subject}"
    if known.version is None:
        return f"{lead}; its version here is not known"
    return f"{lead}: {known.version} has it" if known.is_affected else f"{lead}, but {known.version} does not have it"
