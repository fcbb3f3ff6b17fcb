"""Selects the repro: a named one, a command, or the one that names the subject; with its parameters."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.environment.index import check_project_name
from harness.errors import UserMistake
from harness.model.repro import Repro, command_repro
from harness.request.repros import find_repro, repro_for_subject
from harness.run.commands import recognised

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def chosen_repro(repro: str | None, run: str | None, subject: str | None, params: tuple[str, ...]) -> Repro:
    """Return the repro that the options name, with its parameters. Raises `UserMistake` and `BadRepro`."""
    if subject is not None:
        check_project_name(subject)
    if repro and run:
        raise UserMistake("give either --repro or --run")
    if run:
        found = command_repro(run, content_digest=digest_of(run))
    elif repro:
        found = find_repro(repro)
    elif subject:
        found = repro_for_subject(subject)
    else:
        raise UserMistake("say what to run", hint='name a repro, or give a command with --run "COMMAND"')
    return found.with_params(parameters(params))


def required_python(repro: str | None, run: str | None, subject: str | None) -> str | None:
    """Return the Python requirement of the named repro; None for a command, or if nothing is named."""
    return None if run or not (repro or subject) else chosen_repro(repro, None, subject, ()).requires_python


def runs_tests(run: str) -> bool:
    """Whether a command runs a test tool whose results can be read."""
    try:
        return recognised(shlex.split(run)) is not None
    except ValueError:
        return False


def parameters(params: Sequence[str]) -> dict[str, Any]:
    """Parse the values of `--param`: JSON, or text if it is not JSON. Raises `UserMistake`."""
    return dict(_parameter(text) for text in params)


def typed_words(repro: str | None, run: str | None, params: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that name the repro, quoted for a shell, for commands shown to the user."""
    words = ["--repro", repro] if repro else ["--run", run] if run else []
    words += [word for param in params for word in ("--param", param)]
    return tuple(map(shlex.quote, words))


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserMistake(f"--param takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def digest_of(command: str) -> str:
    """Return the digest of the files that a command names, so that a changed test is a new question."""
    digest = hashlib.sha256()
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    for word in words:
        for path in _files(Path(word.partition("::")[0])):
            digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(file for file in path.rglob("*.py") if file.is_file())
