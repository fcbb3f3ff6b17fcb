"""The README shows every command, and the command lines in it and in the documentation are ones that parse."""

from __future__ import annotations

import html
import re
import runpy
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli import cli

CONTEXT = click.Context(cli)
NAMES = cli.list_commands(CONTEXT)
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("**/*.md")))]
LINES = [
    re.split(r" [<>#]", line.removeprefix("$ ").removeprefix("git bisect run "))[0].split(" && ")[-1].strip()
    for page in PAGES
    for block in re.findall(r"```console\n(.*?)```", page, re.S)
    for line in block.splitlines()
    if line.startswith("$ ") and "harness " in line
]
PICTURE = runpy.run_path(str(ROOT / "docs" / "picture.py"))
SHOWN = [line for line in LINES if line.split()[0].endswith("harness")]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_command_is_shown_and_has_help(name: str) -> None:
    assert f"harness {name}" in README
    answer = CliRunner().invoke(cli, [name, "--help"])
    assert answer.exit_code == 0
    assert len(answer.output.splitlines()) > 5


@pytest.mark.parametrize("line", SHOWN)
def test_every_shown_command_line_parses(line: str) -> None:
    _, name, *words = shlex.split(line)
    cli.get_command(CONTEXT, name).make_context(name, words)


def test_the_readme_shows_command_lines() -> None:
    assert len(SHOWN) >= 10


def test_the_two_commands_at_the_top_are_the_first_block() -> None:
    first = README.split("```console\n")[1].split("```")[0].splitlines()
    assert first[0].startswith("$ python -m pip install . && harness bisect transformers")
    assert first[1].startswith("$ python -m pip install '.[test]' && python -m pytest -n auto")


def test_the_session_is_what_its_record_prints() -> None:
    """`nox -s picture` renders it again; with `-- --run` the record is that of a new run."""
    assert PICTURE["with_session"](README, PICTURE["Session"].read()) == README


def test_a_session_is_read_as_it_was_written(tmp_path: Path) -> None:
    session, record = PICTURE["Session"].read(), tmp_path / "session.json"
    session.write(record)
    assert PICTURE["Session"].read(record) == session


def test_the_picture_has_the_text_of_the_session() -> None:
    """`nox -s picture` draws it again."""
    picture = (ROOT / "docs" / "_static" / "session.svg").read_text(encoding="utf-8")
    rows: dict[str, str] = {}
    for attributes, text in re.findall(r"<text([^>]*clip-path[^>]*)>(.*?)</text>", picture):
        line = attributes.partition("clip-path=")[2]
        rows[line] = rows.get(line, "") + "".join(html.unescape(text).split())  # spaces between colours are no text
    shown = PICTURE["rows_of"](README)
    assert list(rows.values()) == ["".join(row.split()) for row in shown if row]
