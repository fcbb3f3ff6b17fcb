"""The tests that failed elsewhere, so that only they run: in a JUnit report, or in the user's folder (pytest --lf)."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from harness.errors import UserMistake
from harness.model.observation import TESTS_LIMIT
from harness.model.text import counted, listed, plain
from harness.run.commands import only, recognised

if TYPE_CHECKING:
    from harness.run.commands import TestCommand

_LAST_FAILED = ("--lf", "--last-failed")
_CACHE = Path(".pytest_cache", "v", "cache", "lastfailed")
_ROOTS = ("testsuites", "testsuite")
_FAILED = ("failure", "error")
_CHUNK = 2**16
_SUBTEST = re.compile(r"(\w+) [(\[].*", re.DOTALL)  # of unittest: test_it (number=1)
_SHOWN = 3

_Case = tuple[str, str, str]  # the attributes classname, name and file of a test case


def only_failed(
    argv: tuple[str, ...], report: Path | None, folders: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a command with only the tests that failed elsewhere, and sentences about them.

    These are the tests that failed in a JUnit `report`; of `pytest --lf` those that pytest has noted. `folders` are
    those to which their names may be relative, the working directory first. Raises `UserMistake`.
    """
    command = recognised(argv)
    if report is not None:
        if command is None:
            raise UserMistake(
                "--from-junit chooses tests, and the command runs neither pytest nor unittest",
                hint=f'for example --run "pytest -q" --from-junit {report}',
            )
        tests, notes = _of_report(report, command, folders)
        return only(argv, tests), notes
    if command is None or command.tool != "pytest" or not set(_LAST_FAILED).intersection(argv):
        return argv, ()
    return _of_cache(command, folders)


def _of_cache(command: TestCommand, folders: Sequence[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return `pytest --lf` with the tests that failed when pytest last ran here; with all if none did, as pytest."""
    argv = tuple(word for word in command.argv if word not in _LAST_FAILED)
    folder = next((folder for folder in folders if (folder / _CACHE).is_file()), None)
    if folder is None:
        return argv, (f"--lf: there is no {_CACHE}, so all tests run",)
    try:
        noted = list(json.loads((folder / _CACHE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserMistake(f"can't read {folder / _CACHE}", hint="pytest writes it: run the tests once more") from error
    places = [_relative(word, folders[0], folder) for word in argv[command.at + 1 :] if not word.startswith("-")]
    places = [place for place in places if place]
    tests = [test for test in map(str, noted) if not places or any(_is_in(test, place) for place in places)]
    if not tests:
        return argv, (f"--lf: {_CACHE} names no failed test of this command, so all of its tests run",)
    return only(argv, tests), (f"--lf: {counted(len(tests), 'test')} that failed here: {_shown(tests)}",)


def _relative(word: str, here: Path, folder: Path) -> str:
    """Return an argument that names files or a test, relative to pytest's folder; "" for another one."""
    path, *names = word.split("::")
    if not os.path.lexists(here / path):
        return ""
    return "::".join([Path(os.path.relpath(here / path, folder)).as_posix(), *names])


def _shown(tests: Sequence[str]) -> str:
    """The first of some tests; their names come from others, and may have what a terminal would obey."""
    return listed(map(plain, tests), _SHOWN)


def _is_in(test: str, place: str) -> bool:
    return place == "." or test == place or test.startswith((f"{place}/", f"{place}::", f"{place}["))


def _of_report(report: Path, command: TestCommand, folders: Sequence[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    failed = _failed_in(report)
    tests: list[str] = []
    others: list[str] = []
    for case in failed:
        test = _test_of(case, command.tool, folders)
        (tests if test else others).append(test or ".".join(filter(None, case[:2])))
    if not tests:
        raise UserMistake(
            f"no test that failed in {report} is in this project: {_shown(others)}",
            hint="go to the folder in which these tests ran, or name it with --project",
        )
    tests = list(dict.fromkeys(tests))
    notes = [f"{report}: {counted(len(tests), 'test')} failed: {_shown(tests)}"]
    if others:
        notes.append(f"{report}: failed and not in this project: {_shown(others)}: left out")
    return tuple(tests), tuple(notes)


class _Reading:
    """The test cases of a report while it is parsed."""

    def __init__(self) -> None:
        self.root = ""
        self.cases = 0
        self.failed: dict[_Case, None] = {}
        self._case: _Case | None = None

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        name = tag.rpartition(":")[2]
        self.root = self.root or name
        if name == "testcase":
            self.cases += 1
            classname, test, file = (attributes.get(key, "") for key in ("classname", "name", "file"))
            self._case = (classname, test, file)
        elif name in _FAILED and self._case is not None:
            self.failed[self._case] = None

    def end(self, tag: str) -> None:
        """End an element."""
        if tag.rpartition(":")[2] == "testcase":
            self._case = None

    def refuse(self, *_: object) -> None:
        """Refuse a document type: it could declare entities, which grow without end or name other files."""
        raise ValueError("it declares a document type, which no JUnit report does")


def _failed_in(report: Path) -> tuple[_Case, ...]:
    """Return the test cases with a failure or an error, each once. Raises `UserMistake`."""
    reading, parser = _Reading(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reading.begin, reading.end
    parser.StartDoctypeDeclHandler = reading.refuse
    try:
        with report.expanduser().open("rb") as file:
            while chunk := file.read(_CHUNK):
                parser.Parse(chunk)
            parser.Parse(b"", True)
    except OSError as error:
        raise UserMistake(f"can't read {report}: {error.strerror}") from error
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise UserMistake(f"{report} can't be read as XML: {error}", hint="give it a JUnit report") from error
    if reading.root not in _ROOTS:
        raise UserMistake(f"{report} is no JUnit report: it begins with <{plain(reading.root)[:40]}>")
    if not reading.failed:
        hint = "give the report of a run that failed" if reading.cases else "pytest --junitxml=FILE writes such a file"
        raise UserMistake(f"{report} has {counted(reading.cases, 'test')}, and none that failed", hint=hint)
    if len(reading.failed) > TESTS_LIMIT:
        raise UserMistake(f"{report} has more than {TESTS_LIMIT:,} failed tests", hint="run all of them with --run")
    return tuple(reading.failed)


def _test_of(case: _Case, tool: str, folders: Sequence[Path]) -> str:
    """Return a test case's name in its tool, "" if none of the folders has its file.

    pytest writes the file without its suffix and the classes into `classname`, with dots, after the prefix that the
    user may have chosen, or the `unittest.loader._FailedTest` of a module; what can't be imported is the `name`.
    """
    classname, name, file = case
    subtest = _SUBTEST.fullmatch(name)
    first = [part for part in classname.split(".") if part]
    where = [*first, subtest[1] if subtest else name]
    located = _located(where, folders) or _located([*first, *name.split(".")], folders)
    if located is None and file.endswith(".py") and any(os.path.isfile(folder / file) for folder in folders):  # noqa: PTH113
        located = Path(file).as_posix(), where[-2:]
    if located is None:
        return ""
    path, inside = located
    return "::".join([path, *inside]) if tool == "pytest" else ".".join([*path[:-3].split("/"), *inside])


def _located(where: list[str], folders: Sequence[Path]) -> tuple[str, list[str]] | None:
    """Return the file that some of these parts name, with as few as possible left out before, and the parts after."""
    for begin in range(len(where)):
        for folder in folders:
            for end in range(len(where), begin, -1):
                path = f"{'/'.join(where[begin:end])}.py"
                if os.path.isfile(folder / path):  # noqa: PTH113 - a strange name raises nothing
                    return path, where[end:]
    return None
