"""The files that a command writes for its user: constraints, and the paths of reports; and writing one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import NoSpace

if TYPE_CHECKING:
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


def short(path: Path) -> Path:
    """The path relative to the working directory if it is inside, else unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def write_constraints(answer: Answer, path: Path | None, results: Path) -> Path | None:
    """Write constraints that a run has confirmed; returns the path, None if there are none. Raises `NoSpace`."""
    if not answer.constraints or answer.verified_by is None:
        return None
    culprits = "-".join(dict.fromkeys(culprit.package for culprit in answer.culprits[:3]))
    path = path or results / f"constraints-{culprits}.txt"
    text = f"# {answer.sentence}\n" + "".join(f"{constraint}\n" for constraint in answer.constraints)
    write(path, text)
    return path
