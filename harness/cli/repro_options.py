"""From `--repro`, `--run` and `--param` to a repro."""

from __future__ import annotations

import hashlib
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UserMistake
from harness.matrix.running import era_of
from harness.model.repro import Repro, command_repro
from harness.request.repros import find_repro, repro_for_subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.environment import Index


def chosen_repro(repro: str | None, run: str | None, subject: str | None, params: tuple[str, ...]) -> Repro:
    """The repro that the options name, with its parameters. Raises `UserMistake` and `BadRepro`."""
    if repro and run:
        raise UserMistake("--repro and --run exclude each other; give one")
    if run:
        found = command_repro(run, content_digest=_digest(run))
    elif repro:
        found = find_repro(repro)
    elif subject:
        found = repro_for_subject(subject)
    else:
        raise UserMistake("say what to run", hint='--repro NAME|PATH, or --run "COMMAND"')
    return found.with_params(dict(_parameter(text) for text in params))


def typed_words(repro: str | None, run: str | None, params: tuple[str, ...]) -> tuple[str, ...]:
    """The words that name the repro, to be typed again."""
    words = ["--repro", repro] if repro else ["--run", run] if run else []
    words += [word for param in params for word in ("--param", param)]
    return tuple(map(shlex.quote, words))


def short(path: Path) -> Path:
    """A path as seen from the working directory, where it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def one_date(as_of: str | None, pinned: Sequence[str], index: Index) -> datetime | None:
    """The date that `--as-of` gives for one probe; era is that of what is `pinned` with ==. Raises `UserMistake`."""
    if as_of in (None, "none"):
        return None
    if as_of == "era":
        return era_of(pinned, index)
    try:
        return datetime.fromisoformat(str(as_of)).replace(tzinfo=UTC)
    except ValueError as error:
        raise UserMistake(f"--as-of takes era, none or a date such as 2025-06-27, not {as_of!r}") from error


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserMistake(f"--param takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _digest(command: str) -> str:
    """Of the content of the files that a command names, so that a changed test is a new question."""
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
