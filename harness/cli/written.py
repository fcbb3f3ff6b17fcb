"""The files that a command writes for its user: constraints, and the paths of reports; and writing one."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import NoSpace, UserMistake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.bisection.answer import Answer


def write(path: Path, text: str) -> None:
    """Write a file that the user asked for, and the folders above it. Raises `NoSpace`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NoSpace(f"can't write {path}: {error.strerror}") from error


def print_or_write(text: str, path: Path | None) -> None:
    """Print a text on stdout, or write it to the file that the user asked for. Raises `NoSpace`."""
    if path is None:
        click.echo(text, nl=False)
    else:
        write(path, text)


_MARK = "# harness "  # and the hash of the other lines


def write_constraints(answer: Answer, path: Path | None, results: Path) -> Path | None:
    """Write constraints that a run has confirmed; returns the path, None if there are none. Raises `NoSpace`.

    By default it is a file of the results folder, a new one beside a file that the user has changed.
    """
    if not answer.constraints or answer.verified_by is None:
        return None
    culprits = "-".join(dict.fromkeys(culprit.package for culprit in answer.culprits[:3]))
    names = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    default = (results / f"constraints-{culprits}{suffix}.txt" for suffix in names)
    path = path or next(filter(is_replaceable, default))
    write(path, constraints_text(answer.sentence, answer.constraints))
    return path


def constraints_text(sentence: str, constraints: Iterable[str]) -> str:
    """The text of a file of constraints, with a mark by which the harness knows whether it was changed since."""
    head, lines = f"# {sentence}\n", "".join(f"{constraint}\n" for constraint in constraints)
    return f"{head}{_MARK}{_digest(head + lines)}: replaced by the next run unless you change this file\n{lines}"


def is_replaceable(path: Path) -> bool:
    """Whether a file of constraints is missing, empty or no file, or is as the harness wrote it."""
    if not path.is_file():
        return True
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, ValueError):
        return False
    marks = [line for line in lines if line.startswith(_MARK)]
    rest = "".join(line for line in lines if line not in marks)
    return not lines or (len(marks) == 1 and marks[0].startswith(f"{_MARK}{_digest(rest)}: "))


def check_replaceable(path: Path | None) -> None:
    """Raise `UserMistake` if a file of constraints that the user named has something of the user in it."""
    if path is not None and not is_replaceable(path):
        raise UserMistake(f"{path} was not written by the harness, or was changed since", hint="name another file")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
