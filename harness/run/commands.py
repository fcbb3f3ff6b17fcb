"""Recognises commands that run pytest or unittest, however they are started.

Only this module knows their command lines. Pure.
"""

from __future__ import annotations

import enum
import re
import shlex
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ONLY = "--harness-only="
_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ISOLATED = re.compile(r"-[A-Za-z]*[IE]")
_PYTEST = ("pytest", "py.test")
_MOST_TYPED = 12


class TestTool(enum.StrEnum):
    """A test tool whose results can be read."""

    __test__ = False

    PYTEST = "pytest"
    UNITTEST = "unittest"


@frozen
class TestCommand:
    """A command that runs tests: `at` is the index of `pytest` or `unittest` in `argv`, `only` are the tests to run."""

    __test__ = False

    tool: TestTool
    argv: tuple[str, ...]
    at: int
    only: tuple[str, ...] = ()


def recognised(argv: Sequence[str]) -> TestCommand | None:
    """Parse a command; None if it runs neither pytest nor unittest."""
    words, only_these = _split(argv)
    at = _program(words)
    if at >= len(words):
        return None
    name = words[at].rpartition("/")[2]
    if name in _PYTEST:
        return TestCommand(TestTool.PYTEST, words, at, only_these)
    if name == "coverage" and words[at + 1 : at + 2] == ("run",):
        found = _module_of_coverage(words, at + 2)
    elif _PYTHON.fullmatch(name):
        found = _module_of_python(words, at + 1)
    else:
        return None
    if found is None:
        return None
    if words[found] in _PYTEST:
        return TestCommand(TestTool.PYTEST, words, found, only_these)
    if words[found] == "unittest":
        return TestCommand(TestTool.UNITTEST, words, found, only_these)
    return None


def only(argv: Sequence[str], tests: Iterable[str]) -> tuple[str, ...]:
    """Return the command for these tests only, named as in their results; a module's name selects the whole module.

    The tests are not added to the tool's command line, so there can be any number of them, and the paths, options and
    configuration of the whole run still apply. Raises `ValueError` if the command runs neither pytest nor unittest.
    """
    command = recognised(argv)
    if command is None:
        raise ValueError(f"not a command that runs pytest or unittest: {shlex.join(argv)}")
    return (*command.argv, *(f"{_ONLY}{test}" for test in dict.fromkeys(tests)))


def typed(argv: Sequence[str]) -> str:
    """The command line to show, with at most a dozen tests."""
    command = recognised(argv)
    words, asked = _split(argv)
    if command is None or not asked or len(asked) > _MOST_TYPED or any(test.startswith("<") for test in asked):
        return shlex.join(words)
    covered = [test.split("::")[0] for test in asked] if command.tool is TestTool.PYTEST else asked
    kept = words[: command.at + 1] + tuple(word for word in words[command.at + 1 :] if not _covers(word, covered))
    if command.tool is TestTool.UNITTEST and "discover" in kept:
        return shlex.join(words)
    return shlex.join((*kept, *asked))


def collecting(
    command: TestCommand, *, folder: str, results: str, only_file: str, given: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the arguments and environment variables that make a command write its results.

    `folder` contains our plugins, `results` is the file to write, `only_file` a JSON list of `command.only`; `given`
    are the variables of the original command.
    """
    words = command.argv
    if command.tool is TestTool.PYTEST:
        words = (*words[: command.at + 1], "-p", "_harness_pytest", *words[command.at + 1 :])
    else:
        words = (*words[: command.at], "_harness_unittest", *words[command.at + 1 :])
    path = given.get("PYTHONPATH", "")
    variables = {"PYTHONPATH": f"{path}:{folder}" if path else folder, "HARNESS_TESTS": results}
    return words, variables | ({"HARNESS_TESTS_ONLY": only_file} if command.only else {})


def _split(argv: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split off the tests that `only` selected; returns the original arguments and these tests."""
    words = tuple(word for word in argv if not word.startswith(_ONLY))
    return words, tuple(word[len(_ONLY) :] for word in argv if word.startswith(_ONLY))


def is_python(program: str) -> bool:
    """Whether a program's name or path is a Python interpreter's."""
    return _PYTHON.fullmatch(program.rpartition("/")[2]) is not None


def program_at(words: Sequence[str]) -> int:
    """The index of a command's program, after `env` and variable assignments."""
    at = 0
    if words and words[0].rpartition("/")[2] == "env":
        at = 1
        while at < len(words) and _ASSIGNMENT.fullmatch(words[at]):
            at += 1
        if at < len(words) and words[at].startswith("-"):
            return 0
    return at


def _program(words: Sequence[str]) -> int:
    """The index of the program, after `env` and variable assignments."""
    at = 0
    if words and words[0].rpartition("/")[2] == "env":
        at = 1
        while at < len(words) and _ASSIGNMENT.fullmatch(words[at]):
            if words[at].startswith("PYTHONPATH="):
                return len(words)  # it would hide our variables
            at += 1
    return at


def _module_of_python(words: Sequence[str], at: int) -> int | None:
    """The index of the module that Python runs, None if it runs none or ignores environment variables."""
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-m":
            if words[at + 1 : at + 2] == ("coverage",) and words[at + 2 : at + 3] == ("run",):
                return _module_of_coverage(words, at + 3)
            return at + 1 if at + 1 < len(words) else None
        if word.startswith(("-c", "-m")) or _ISOLATED.match(word):
            return None
        at += 2 if word in ("-W", "-X") else 1
    return None


def _module_of_coverage(words: Sequence[str], at: int) -> int | None:
    """The index of the module that coverage runs, or None."""
    while at < len(words) and words[at].startswith("-"):
        if words[at] in ("-m", "--module"):
            return at + 1 if at + 1 < len(words) else None
        at += 1
    return None


def _covers(word: str, names: Iterable[str]) -> bool:
    """Whether an argument names a folder, module or test that contains one of the names."""
    path = word.split("::")[0].rstrip("/").removeprefix("./")
    return any(name == path or name.startswith((f"{path}/", f"{path}.")) for name in names) if path else False
