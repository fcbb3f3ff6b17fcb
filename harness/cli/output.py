"""What a command prints, for people or for a program, and the files that it writes for its user."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from harness.cli.options import Decorator, grouped, json_option, option
from harness.errors import NoSpace, UserMistake
from harness.model.text import to_json
from harness.terminal import reporting
from harness.terminal.console import Console
from harness.terminal.stream import OPTION, JsonLines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    from harness.bisection.answer import Answer
    from harness.events import Reporter


@frozen
class Output:
    """What a command prints on stdout: text for people, one JSON document, or `lines`, each step as a line of JSON."""

    as_json: bool = False
    lines: JsonLines | None = None

    @property
    def is_for_people(self) -> bool:
        """Whether it is text."""
        return not self.as_json and self.lines is None

    def reporting(self) -> AbstractContextManager[Reporter]:
        """Return a reporter that shows the steps on stderr, or prints them as `lines`."""
        return reporting(Console(stderr=True), quiet=self.as_json, lines=self.lines)

    def answer(self, document: Mapping[str, Any], exit_code: int, **files: Path | None) -> None:
        """Print the answer for a program, and the `files` that were written by their kind; nothing for people."""
        if self.lines is not None:
            self.lines.answered(document, exit_code, files)
        elif self.as_json:
            click.echo(to_json(document))


def output_options(what: str) -> Decorator:
    """Add `--json`, for printing only `what`, and `--json-lines` to a command, which gets them as `output`."""

    def made(context: click.Context, _param: click.Parameter, is_given: bool) -> JsonLines | None:
        if is_given and "--json" in context.meta["typed"]:
            raise UserMistake("--json and --json-lines each print something else: give one of them")
        return JsonLines() if is_given else None

    words = "Print each step as one JSON object in a line as it happens, the answer or the error last."
    lines = option("Output", OPTION, "lines", is_flag=True, callback=made, help=words)
    return grouped("output", Output, ("as_json", "lines"), [json_option(what), lines])


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
