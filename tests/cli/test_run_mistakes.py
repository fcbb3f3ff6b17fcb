"""`--run` with a tool or a project missing from the environment gives one sentence, and nothing is bisected."""

from __future__ import annotations

import pytest

ENDS = ("--good", "1.0", "--bad", "1.8")


def test_a_tool_outside_the_environment_is_refused_before_any_run(harness):
    ended = harness("bisect", "brittle", "--run", "ruff check", *ENDS)
    assert ended.code == 2
    assert "--with ruff" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "command", ["sh -c 'no-such-tool'", "sh -c 'pytest -x'", "python absent.py", "python -c 'import mine'"]
)
def test_a_mistake_in_the_command_is_not_bisected(harness, command):
    (harness.folder / "mine.py").write_text("")
    ended = harness("bisect", "brittle", "--run", command, *ENDS)
    assert ended.code == 2
    assert "not a bug" in ended.stderr
