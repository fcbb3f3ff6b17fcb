"""`--run` with a tool or a project missing from the environment gives one sentence, and nothing is bisected."""

from __future__ import annotations

import pytest

ENDS = ("--good", "1.0", "--bad", "1.8")


def test_a_tool_outside_the_environment_is_refused_before_any_run(harness):
    ended = harness("bisect", "brittle", "--run", "ruff check", *ENDS)
    assert ended.code == 2
    assert "ruff is " in ended.stderr
    assert "--with " in ended.stderr  # with its name only where it is on the PATH: a misspelled name is not suggested
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "command", ["sh -c 'no-such-tool'", "sh -c 'pytest -x'", "python absent.py", "python -c 'import mine'"]
)
def test_a_mistake_in_the_command_is_not_bisected(harness, command):
    (harness.folder / "mine.py").write_text("")
    ended = harness("bisect", "brittle", "--run", command, *ENDS)
    assert ended.code == 2
    assert "not a bug" in ended.stderr


def test_a_syntax_error_in_the_repro_is_told_as_that(harness, write_repro):
    told = "SyntaxError: invalid syntax (brittle_step.py, line"
    write_repro("brittle", tool="", body="import brittle\n\nif True print(1)\n")
    ended = harness("bisect", "brittle", "--repro", "repros/brittle_step.py", *ENDS)
    assert (ended.code, f"this failure is not a bug: {told}" in ended.stderr) == (2, True)
    write_repro("brittle", body="import brittle\n\nif True print(2)\n")  # with a signature, which it does not match
    ended = harness("bisect", "brittle", "--repro", "repros/brittle_step.py", *ENDS)
    assert (ended.code, f"this failure is not a bug: {told}" in ended.stderr) == (2, True)


def test_a_syntax_error_in_a_file_of_a_command_is_told_as_that(harness):
    (harness.folder / "mine.py").write_text("def test_it():\n    return (\n")
    ended = harness("bisect", "brittle", "--run", "python mine.py", *ENDS)
    assert ended.code == 2
    assert "SyntaxError: '(' was never closed (mine.py, line 2)" in ended.stderr


def test_a_misspelled_import_is_told_as_not_installed(harness, write_repro):
    write_repro("brittle", tool="", body="import britle\n")
    ended = harness("bisect", "brittle", "--repro", "repros/brittle_step.py", *ENDS)
    assert ended.code == 1
    assert "Not installed: britle. --with britle adds what is missing" in ended.stdout
