"""Commands that run tests: recognised however pytest or unittest is started, restricted to some tests, and read.

To collect the result of each test, our plugin is injected into the command and writes a record. A process that runs
other people's code writes it, so nothing in it is trusted.

`mistake_in` says what is wrong with a command itself: a program that the environment lacks, no tests, a wrong path. A
`pytest` from the user's PATH would run with the user's packages instead of the probed ones. A failure that comes from a
wrong command would be found in every release or in none, if the harness took it for the bug.
"""

from __future__ import annotations

import difflib
import enum
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from harness.model import Outcome, RaisedException, TestOutcome, TestResult
from harness.model.observation import TESTS_LIMIT, WHOLE_RUN, bounded
from harness.model.text import one_line, plain
from harness.run.result import Ran, Unreadable, content_of, exception_of, files_of

_ONLY = "--harness-only="
_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ISOLATED = re.compile(r"-[A-Za-z]*[IE]")
_PYTEST = ("pytest", "py.test")
_MOST_TYPED = 12
_PLUGINS = Path(__file__).with_name("inside") / "collect"
_RECORD = "tests.jsonl"
_ONLY_FILE = "only.json"
_RECORD_LIMIT = 128 * 1024 * 1024
_NO_TESTS = "no tests were found"
_PYTEST_ENDS = {
    2: "pytest was interrupted",
    3: "pytest or one of its plugins failed",
    4: "pytest could not start",
    5: _NO_TESTS,
}
_UNITTEST_ENDS = {5: _NO_TESTS}
_RAN_NONE = re.compile(r"^Ran 0 tests in ", re.MULTILINE)


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
    at = program_at(words)
    if at >= len(words) or any(word.startswith("PYTHONPATH=") for word in words[:at]):  # it would hide our variables
        return None
    name, found = words[at].rpartition("/")[2], None
    if name in _PYTEST:
        found = at
    elif name == "coverage" and words[at + 1 : at + 2] == ("run",):
        found = _module_of_coverage(words, at + 2)
    elif _PYTHON.fullmatch(name):
        found = _module_of_python(words, at + 1)
    if found is None:
        return None
    if found == at or words[found] in _PYTEST:
        return TestCommand(TestTool.PYTEST, words, found, only_these)
    return TestCommand(TestTool.UNITTEST, words, found, only_these) if words[found] == "unittest" else None


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


@frozen
class Record:
    """A parsed record: the results, the tests that started but did not end, and whether the run ended."""

    tests: tuple[TestResult, ...] = ()
    running: tuple[str, ...] = ()
    ended: bool = False
    loaded: Mapping[str, tuple[str, ...]] = field(factory=dict)
    complaint: str = ""


@frozen
class Collection:
    """Collects the tests of one run; `folder` holds the record."""

    command: TestCommand
    folder: Path

    def start(self, argv: Sequence[str], env: dict[str, str]) -> list[str]:
        """Return the command to start instead of `argv`, and add the variables that it needs to `env`."""
        path, words = env.get("PYTHONPATH", ""), list(argv)
        if self.command.tool is TestTool.PYTEST:
            words[self.command.at + 1 : self.command.at + 1] = ["-p", "_harness_pytest"]
        else:
            words[self.command.at] = "_harness_unittest"
        env["PYTHONPATH"] = f"{path}:{_PLUGINS}" if path else str(_PLUGINS)
        env["HARNESS_TESTS"] = str(self.folder / _RECORD)
        if self.command.only:
            (self.folder / _ONLY_FILE).write_text(json.dumps(self.command.only), encoding="utf-8")
            env["HARNESS_TESTS_ONLY"] = str(self.folder / _ONLY_FILE)
        return words

    def added_to(self, ran: Ran) -> Ran:
        """Return the result of a run with its tests. If the process died, the test in which it died is an error."""
        record = read_record(self.folder / _RECORD)
        if ran.outcome is Outcome.COMPLETED and not record.tests and _RAN_NONE.search(ran.tail):
            # Up to Python 3.11, unittest has exit code 0 although it ran no tests.
            ran = evolve(ran, outcome=Outcome.EXITED, detail=_NO_TESTS)
        died = _last_words(ran, record)
        tests = record.tests
        if died is not None:
            tests += tuple(TestResult(test, TestOutcome.ERROR, died) for test in record.running or (WHOLE_RUN,))
        return evolve(
            ran,
            tests=bounded(tests),
            detail=_detail(self.command.tool, ran, tests, record) + record.complaint,
            loaded=dict(record.loaded),
        )


def collection_of(argv: Sequence[str], folder: Path) -> Collection | None:
    """Return the collection for a command, with the record in `folder`; None if it runs neither pytest nor unittest."""
    command = recognised(argv)
    return Collection(command, folder) if command is not None else None


def read_record(path: Path) -> Record:
    """Read the record at `path`. Drops invalid results; the record of an unreadable file has only a complaint."""
    try:
        content = content_of(path, _RECORD_LIMIT)
    except Unreadable as why:
        return Record(complaint=f"; the record of its tests {why}")
    results: dict[str, TestResult] = {}
    running: dict[str, None] = {}
    loaded: dict[str, tuple[str, ...]] = {}
    ended = False
    for line in (content or b"").splitlines():
        told = _object(line)
        if isinstance(told.get("start"), str) and len(running) < TESTS_LIMIT:
            running[plain(told["start"])] = None
        elif isinstance(told.get("test"), str) and len(results) < TESTS_LIMIT:
            result = _result(told)
            running.pop(plain(told["test"]), None)
            if result is not None:
                results[result.id] = result
        elif told.get("end") is True:
            ended, loaded = True, files_of(told.get("loaded"))
    owners = {file: name for name, files in loaded.items() for file in files}
    tests = tuple(evolve(one, exception=_with_packages(one.exception, owners)) for one in results.values())
    return Record(tests, tuple(running), ended, loaded)


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _result(told: Mapping[str, Any]) -> TestResult | None:
    seconds = told.get("seconds")
    try:
        outcome = TestOutcome(told.get("outcome", ""))
    except ValueError:
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    duration = float(seconds) if is_number and seconds else 0.0
    return TestResult(plain(told["test"]), outcome, exception_of(told.get("exception")), duration)


def _with_packages(raised: RaisedException | None, owners: Mapping[str, str]) -> RaisedException | None:
    """Return the exception with the distribution of each frame, if known, instead of its top-level folder."""
    if raised is None:
        return None
    return evolve(
        raised,
        frames=tuple(
            evolve(frame, package=owners.get(frame.file, frame.package)) if frame.package else frame
            for frame in raised.frames
        ),
        cause=_with_packages(raised.cause, owners),
    )


def _last_words(ran: Ran, record: Record) -> RaisedException | None:
    """The failure of the tests in which the process died, or of the whole run if no test explains it."""
    in_test = bool(record.running) and not record.ended
    if not in_test and any(test.outcome.is_failure for test in record.tests):
        return None
    where = " in this test" if in_test else ""
    match ran.outcome:
        case Outcome.CRASHED:
            return RaisedException("Crashed", ran.detail)
        case Outcome.TIMED_OUT:
            return RaisedException("TimedOut", f"the run timed out{where}")
        case Outcome.EXITED if in_test:
            return RaisedException("Exited", f"the process ended{where} with exit code {ran.exit_code}")
        case Outcome.EXITED if ran.exit_code not in (0, 5):
            return RaisedException("Exited", _last_line(ran.tail) or ran.detail)
        case _:
            return None


def _detail(tool: TestTool, ran: Ran, tests: tuple[TestResult, ...], record: Record) -> str:
    """One sentence about how the run ended."""
    running = "" if record.ended or not record.running else f" in {_named(record.running)}"
    if ran.outcome is not Outcome.EXITED:
        return ran.detail + ("" if ran.outcome is Outcome.COMPLETED else running)
    failed = [test.id for test in tests if test.outcome.is_failure and test.id != WHOLE_RUN]
    told = f"{len(failed)} of {len(tests)} tests failed: {_named(failed)}" if failed else ""
    if failed and tool is TestTool.PYTEST and not any("::" in test for test in failed):
        told = f"could not import {_named(failed)}"
    ends = _PYTEST_ENDS if tool is TestTool.PYTEST else _UNITTEST_ENDS
    end = ends.get(ran.exit_code or 0)
    whole = next((test.exception for test in tests if test.id == WHOLE_RUN), None)
    if whole is not None and not told:
        told = f"{whole.name}: {one_line(whole.message, 200)}"
    if running:
        return f"{ran.detail}{running}"
    if end is not None:
        return f"{end} (exit code {ran.exit_code})" + (f": {told}" if told else "")
    return told or ran.detail


def _last_line(text: str) -> str:
    """The last non-empty line, where pytest puts a usage error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [""])[-1]


def _named(tests: Sequence[str]) -> str:
    return tests[0] + (f" and {len(tests) - 1} more" if len(tests) > 1 else "")


# Tools that are Python packages, even if a file with this name on the user's PATH is something else.
_SAME_NAME = (
    *("accelerate", "coverage", "deepspeed", "hatch", "ipython", "jupyter", "mypy", "nox", "pdm", "poetry", "pytest"),
    *("ray", "tox", "trl"),
)
_PYTHON_TOOLS = {
    **dict(zip(_SAME_NAME, _SAME_NAME, strict=True)),
    "huggingface-cli": "huggingface-hub",
    "py.test": "pytest",
    "torchrun": "torch",
    "transformers-cli": "transformers",
}
_SYSTEM = frozenset({"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"})
_PYTHON_NAME = re.compile(r"(python|pypy)[\d.]*|pip[\d.]*")
_SHEBANG = re.compile(rb"#![^\n]*(python|pypy)|#!/bin/sh\n'''exec'")
# Part of Debian and written in Python. Libraries call it, and it uses no packages.
_HARMLESS = frozenset({"lsb_release"})
_STUB = """#!/bin/sh
echo "${0##*/}: command not found in the environment of the probe; add the package that has it with --with NAME" >&2
exit 127
"""
_NOT_FOUND = re.compile(r"(?:^|: )(?P<name>[^\s:]+): (?:command )?not found", re.MULTILINE)
_NO_TOOL = re.compile(r"python[\d.]*: No module named (?P<name>[\w.]+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>\w+)[\w.]*'")
_NO_FILE = re.compile(r"python[\d.]*: can't open file '(?P<name>[^'\n]+)'")
_SYNTAX = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)\n(?:(?!\s*(?:E\s+)?File ")[^\n]*\n){0,4}?(?:E\s+)?'
    r"(?P<error>(?:Syntax|Indentation|Tab)Error: [^\n]*)"
)
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|getaddrinfo failed|Failed to resolve"
    r"|Network is unreachable|We couldn't connect to 'https?://|LocalEntryNotFoundError|ENETUNREACH"
)
_RAN_NO_TESTS = re.compile(r"no tests ran in|^Ran 0 tests|^NO TESTS RAN", re.MULTILINE)
_PYTEST_USAGE = re.compile(r"^ERROR: (?:usage:.*|file or directory not found: .*|not found: .*)", re.MULTILINE)


def program_of(argv: Sequence[str]) -> str:
    """Return the program that a command starts, as written; for `python -m`, with the module."""
    at = program_at(argv)
    if at >= len(argv):
        return ""
    module = argv[at + 2 : at + 3] if is_python(argv[at]) and argv[at + 1 : at + 2] == ("-m",) else ()
    return " -m ".join((argv[at], *module))


def missing_program(
    argv: Sequence[str], python: Path, path: str, invoked_from: Path, beside: Sequence[Path] = ()
) -> str:
    """Return in one sentence why a command can't run in the environment of `python`, "" if it can.

    `path` is the user's PATH; `invoked_from` is the base of relative program paths; `beside` are further folders with
    modules, and with programs below `bin`.
    """
    at = program_at(argv)
    if at >= len(argv):
        return ""
    program, own = argv[at], python.parent
    if any((folder / "bin" / program).exists() for folder in beside):
        return ""
    if os.sep in program:
        return _unfit_script(invoked_from / program, own)
    if (own / program).exists():
        return _missing_module(argv, at, python, beside) if is_python(program) else ""
    found = _first(program, path)
    if (
        program in _PYTHON_TOOLS
        or _PYTHON_NAME.fullmatch(program)
        or (found is not None and _is_python_tool(str(found)))
    ):
        if is_python(program):
            return f"{program} is not the Python of the environment; write python, or choose it with --python"
        return f"{program} is not in the environment; add --with {_PYTHON_TOOLS.get(program, program)}"
    if found is None and program != "env":
        close = difflib.get_close_matches(program, [*_PYTHON_TOOLS, "python"], n=1, cutoff=0.75)
        advice = f"did you mean {close[0]}?" if close else f"add its package, such as --with {program}"
        return f"{program} is neither in the environment nor on the PATH; {advice}"
    return ""


def write_stubs(folder: Path, python: Path, path: str) -> None:
    """Write stubs to a folder that is on the PATH after the environment's programs and before the user's.

    For each of the user's Python tools that the environment lacks, the stub says so and exits with 127. This also works
    if a shell or another program starts it.
    """
    folder.mkdir()
    stub = folder / ".stub"
    stub.write_text(_STUB, encoding="ascii")
    stub.chmod(0o755)
    for name, real in user_tools(path):
        if not (python.parent / name).exists():
            (folder / name).symlink_to(real or stub)


@lru_cache(maxsize=8)
def user_tools(path: str) -> tuple[tuple[str, str], ...]:
    """Return the Python tools on a PATH, each with the first program of that name that is no Python tool, or ""."""
    first: dict[str, str] = {}
    hidden: set[str] = set()
    for folder in dict.fromkeys(path.split(os.pathsep)):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name) if folder else []
        except OSError:
            continue
        for entry in entries:
            if entry.name in first or entry.name.startswith("_") or not os.access(entry.path, os.X_OK):
                continue
            if entry.name in _PYTHON_TOOLS or _PYTHON_NAME.fullmatch(entry.name) or _is_python_tool(entry.path):
                hidden.add(entry.name)
            else:
                first[entry.name] = entry.path
    return tuple((name, first.get(name, "")) for name in sorted(hidden))


def _first(program: str, path: str) -> Path | None:
    for folder in path.split(os.pathsep):
        candidate = Path(folder, program)
        if folder and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _is_python_tool(file: str) -> bool:
    """Whether a file is a Python script, in a virtual environment, or a shim such as pyenv's."""
    folder, _, name = file.rpartition("/")
    if name in _HARMLESS:
        return False
    head = _head(file)
    if head.startswith(b"#!") and _SHEBANG.match(head):
        return True
    return folder not in _SYSTEM and (_is_venv(folder) or (head.startswith(b"#!") and _has_python(folder)))


@lru_cache(maxsize=64)
def _is_venv(folder: str) -> bool:
    return Path(folder, "..", "pyvenv.cfg").exists()


@lru_cache(maxsize=64)
def _has_python(folder: str) -> bool:
    return Path(folder, "python").exists() or Path(folder, "python3").exists()


def _unfit_script(script: Path, own: Path) -> str:
    """Why a script can't run by its path, "" if it can: its first line may name another Python."""
    line = _head(str(script)).partition(b"\n")[0].decode("utf-8", "replace")
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    if words and is_python(words[0]) and Path(words[0]).parent != own:
        return f"{script} runs with {words[0]}, not with the environment's Python; write python {script.name}"
    return ""


def _head(file: str) -> bytes:
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(opened, 200)
    except OSError:  # a folder
        return b""
    finally:
        os.close(opened)


def _missing_module(argv: Sequence[str], at: int, python: Path, beside: Sequence[Path]) -> str:
    """Why `python -m X` can't run: the environment lacks X. Returns "" if only a run could show that."""
    value = _module(argv[at + 1 :])
    top = value.partition(".")[0]
    folders = list(python.parent.parent.glob("lib*/python*/site-packages"))
    if any((folder / top).exists() or list(folder.glob(f"{top}.*")) for folder in beside):
        return ""
    if top in sys.stdlib_module_names or not _is_closed(python, folders) or not top.isidentifier():
        return ""
    if any((folder / top).exists() or list(folder.glob(f"{top}.*")) for folder in folders):
        return ""
    return f"python -m {value}: {top} is not in the environment; add --with {_PYTHON_TOOLS.get(top, top)}"


def _module(words: Sequence[str]) -> str:
    """The module after -m, "" if there is none."""
    for before, word, value in zip(("", *words), words, words[1:], strict=False):
        if word == "-m":
            return value
        if word == "-c" or not (word.startswith("-") or before in ("-W", "-X")):
            return ""
    return ""


def _is_closed(python: Path, folders: Sequence[Path]) -> bool:
    """Whether only these folders are importable: a virtual environment whose `.pth` files add no others."""
    try:
        settings = (python.parent.parent / "pyvenv.cfg").read_text(encoding="utf-8").lower().replace(" ", "")
    except (OSError, UnicodeDecodeError):
        return False
    if "include-system-site-packages=true" in settings:
        return False
    paths = [file for folder in folders for file in folder.glob("*.pth") if file.name != "_virtualenv.pth"]
    return bool(folders) and not any(_leads_away(file) for file in paths)


def _leads_away(file: Path) -> bool:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return True
    return any("editable" in line or Path(line.strip()).is_absolute() for line in lines)


def mistake_in(ran: Ran, argv: Sequence[str], invoked_from: Path) -> str:
    """Return one sentence about what is wrong with the command, "" if nothing is.

    `argv` is empty for a script, which can only have a syntax error, or import the user's own project, which is not
    installed in the environment.
    """
    if ran.outcome not in (Outcome.EXITED, Outcome.RAISED, Outcome.NO_REPORT):
        return ""
    own = _syntax_error(ran) or _own_project(ran, invoked_from)
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


def _syntax_error(ran: Ran) -> str:
    """Say that a file of the user's own is not Python; "" if none is, or if there are results of other tests."""
    found = list(_SYNTAX.finditer(ran.tail))
    if not found or any(test.outcome is not TestOutcome.ERROR for test in ran.tests):
        return ""
    last = found[-1]
    if any(part in last["file"] for part in ("/site-packages/", "/lib/python3")):
        return ""
    return f"{last['error'].strip()} ({Path(last['file']).name}, line {last['line']})"


def needs_network(ran: Ran) -> str:
    """Say that a run in a sandbox without network needs it; "" if it does not. A model hub says so in many words."""
    if ran.outcome not in (Outcome.EXITED, Outcome.RAISED) or not _NO_NETWORK.search(ran.tail):
        return ""
    return "it needs the network, which runs don't have in the sandbox; --network allows it"


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
    if ran.exit_code in (0, 5) and (command is not None or _RAN_NO_TESTS.search(ran.tail)):
        return "no tests were found"
    if ran.exit_code == 4 and (usage := _PYTEST_USAGE.search(ran.tail)):
        return f"pytest usage error: {usage[0].removeprefix('ERROR: ').strip()}"
    if ran.exit_code == 2 and command is not None and command.tool is TestTool.UNITTEST and "usage:" in ran.tail:
        return "unittest usage error"
    return ""


def _last(pattern: re.Pattern[str], text: str) -> str:
    return next((match["name"] for match in reversed(list(pattern.finditer(text)))), "")
