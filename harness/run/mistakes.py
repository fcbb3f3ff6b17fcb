"""Recognises failures that come from a wrong command rather than from the bug.

If the harness took one for the bug, it would find it in every release or in none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.model import Outcome
from harness.model.observation import WHOLE_RUN
from harness.run.commands import TestTool, recognised

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.run.result import Ran

_NOT_FOUND = re.compile(r"(?:^|: )(?P<name>[^\s:]+): (?:command )?not found", re.MULTILINE)
_NO_TOOL = re.compile(r"python[\d.]*: No module named (?P<name>[\w.]+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>\w+)[\w.]*'")
_NO_FILE = re.compile(r"python[\d.]*: can't open file '(?P<name>[^'\n]+)'")
_NO_TESTS = re.compile(r"no tests ran in|^Ran 0 tests|^NO TESTS RAN", re.MULTILINE)
_PYTEST_USAGE = re.compile(r"^ERROR: (?:usage:.*|file or directory not found: .*|not found: .*)", re.MULTILINE)


def mistake_in(ran: Ran, argv: Sequence[str], invoked_from: Path) -> str:
    """Return one sentence about what is wrong with the command, "" if nothing is.

    `argv` is empty for a script. The only such mistake of a script is to import the user's own project, which is not
    installed in the environment.
    """
    if ran.outcome not in (Outcome.EXITED, Outcome.RAISED, Outcome.NO_REPORT):
        return ""
    own = _own_project(ran, invoked_from)
    if own or not argv:
        return own
    if ran.exit_code == 127 and (found := _last(_NOT_FOUND, ran.tail)):
        return f"{found}: command not found; if a Python package provides it, add that with --with"
    if ran.exit_code == 126:
        return "the command can't be executed (exit code 126)"
    if found := _last(_NO_TOOL, ran.tail):
        return f"python -m {found}: no such module in the environment; add --with {found.split('.')[0]}"
    if ran.exit_code == 2 and (found := _last(_NO_FILE, ran.tail)):
        return f"no such file: {found}"
    return _test_tool(ran, argv)


def _own_project(ran: Ran, invoked_from: Path) -> str:
    """Say that the run imports the user's own project, which is not installed in the environment; "" if it does not."""
    found = [match["name"] for match in _NO_MODULE.finditer(ran.tail)]
    for name in dict.fromkeys(reversed(found)):
        for folder in (invoked_from, invoked_from / "src"):
            if (folder / name).is_dir() or (folder / f"{name}.py").is_file():
                return f"No module named {name!r}: {folder / name} is not installed in the environment"
    return ""


def _test_tool(ran: Ran, argv: Sequence[str]) -> str:
    command = recognised(argv)
    if any(test.id != WHOLE_RUN for test in ran.tests):
        return ""
    if ran.exit_code == 5 and (command is not None or _NO_TESTS.search(ran.tail)):
        return "no tests were found"
    if ran.exit_code == 4 and (usage := _PYTEST_USAGE.search(ran.tail)):
        return f"pytest usage error: {usage[0].removeprefix('ERROR: ').strip()}"
    if ran.exit_code == 2 and command is not None and command.tool is TestTool.UNITTEST and "usage:" in ran.tail:
        return "unittest usage error"
    return ""


def _last(pattern: re.Pattern[str], text: str) -> str:
    return next((match["name"] for match in reversed(list(pattern.finditer(text)))), "")
