"""Commands that run tests: recognised however pytest or unittest is started, restricted to some tests, and read.

To collect the result of each test, our plugin is injected into the command and writes a record. A process that runs
other people's code writes it, so nothing in it is trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from harness.model import Device, Outcome, RaisedException, TestOutcome, TestResult
from harness.model.observation import EXIT, TESTS_LIMIT, WHOLE_RUN, Trace, bounded
from harness.model.text import one_line, plain
from harness.run.devices import outcome_of_text
from harness.run.launch import marshalled
from harness.run.result import REPORT_LIMIT, Ran, Unreadable, content_of, valid

_ONLY = "--harness-only="
_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ISOLATED = re.compile(r"-[A-Za-z]*[IE]")
_PYTEST = ("pytest", "py.test")
_MOST_TYPED = 12
_PLUGINS = Path(__file__).with_name("inside") / "collect"
_STARTUP = Path(__file__).with_name("inside") / "startup"
_MOST_PROCESSES = 200  # of a traced command, whose records are read
_RECORD = "tests.jsonl"
_ONLY_FILE = "only.json"
_RECORD_LIMIT = 128 * 1024 * 1024
NO_TESTS = "no tests were found"
_PYTEST_ENDS = {
    2: "pytest was interrupted",
    3: "pytest or one of its plugins failed",
    4: "pytest could not start",
    5: NO_TESTS,
}
_ERROR = re.compile(r"error|\bfail", re.IGNORECASE)
_RAN_NONE = re.compile(r"^Ran 0 tests in ", re.MULTILINE)


@frozen
class TestCommand:
    """A command that runs tests with `tool` ("pytest" or "unittest"), which is at the index `at` of `argv`.

    `only` are the tests to run.
    """

    __test__ = False

    tool: str
    argv: tuple[str, ...]
    at: int
    only: tuple[str, ...] = ()


def recognised(argv: Sequence[str]) -> TestCommand | None:
    """Parse a command; None if it runs neither pytest nor unittest."""
    words, only_these = _split(argv)
    at = program_at(words)
    if at >= len(words) or any(word.startswith("PYTHONPATH=") for word in words[:at]):  # it would hide our variables
        return None
    name, tool_at = words[at].rpartition("/")[2], None
    if name in _PYTEST:
        tool_at = at
    elif name == "coverage" or _PYTHON.fullmatch(name):
        tool_at = module_at(words, at)
    if tool_at is None:
        return None
    if tool_at == at or words[tool_at] in _PYTEST:
        return TestCommand("pytest", words, tool_at, only_these)
    return TestCommand("unittest", words, tool_at, only_these) if words[tool_at] == "unittest" else None


def only(argv: Sequence[str], tests: Iterable[str]) -> tuple[str, ...]:
    """Return the command for these tests only, named as in their results; a module's name selects the whole module.

    The tests are not added to the tool's command line, so there can be any number of them, and the paths, options and
    configuration of the whole run still apply. Raises `ValueError` if the command runs neither pytest nor unittest.
    """
    command = recognised(argv)
    if command is None:
        raise ValueError(f"not a command that runs pytest or unittest: {shlex.join(argv)}")
    return (*command.argv, *(f"{_ONLY}{test}" for test in dict.fromkeys(tests)))


def whole(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command without a selection of tests."""
    return _split(argv)[0]


def is_forkable(argv: Sequence[str]) -> bool:
    """Whether a fork of a Python process can do what a command does: run pytest, or a module that Python runs."""
    words = whole(argv)
    if words and is_python(words[0]) and os.sep not in words[0]:
        return len(words) > 2 and words[1] == "-m" and words[2] != "coverage"
    return words[:1] != () and words[0] in _PYTEST


def typed(argv: Sequence[str]) -> str:
    """The command line to show, with at most a dozen tests."""
    command = recognised(argv)
    words, tests = _split(argv)
    if command is None or not tests or len(tests) > _MOST_TYPED or any(test.startswith("<") for test in tests):
        return shlex.join(words)
    covered = [test.split("::")[0] for test in tests] if command.tool == "pytest" else tests
    shown = words[: command.at + 1] + tuple(word for word in words[command.at + 1 :] if not _covers(word, covered))
    if command.tool == "unittest" and "discover" in shown:
        return shlex.join(words)
    return shlex.join((*shown, *tests))


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


def module_at(words: Sequence[str], at: int) -> int | None:
    """The index of the module that Python or coverage, whose name is at index `at`, runs; of coverage's, if both do.

    None if it runs no module or ignores environment variables.
    """
    if words[at].rpartition("/")[2] == "coverage":
        at += 1
        if words[at : at + 1] != ("run",):
            return None
    at += 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word in ("-m", "--module"):
            is_coverage = words[at + 1 : at + 3] == ("coverage", "run")
            return module_at(words, at + 1) if is_coverage else at + 1 if at + 1 < len(words) else None
        if word.startswith(("-c", "-m")) or _ISOLATED.match(word):
            return None
        at += 2 if word in ("-W", "-X") else 1
    return None


def _covers(word: str, names: Iterable[str]) -> bool:
    """Whether an argument names a folder, module or test that contains one of the names."""
    path = word.split("::")[0].rstrip("/").removeprefix("./")
    return any(name == path or name.startswith((f"{path}/", f"{path}.")) for name in names) if path else False


@frozen
class Record:
    """A parsed record: the results, the tests that started but did not end, whether the tests and the run ended."""

    tests: tuple[TestResult, ...] = ()
    running: tuple[str, ...] = ()
    over: bool = False
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
        if self.command.tool == "pytest":
            words[self.command.at + 1 : self.command.at + 1] = ["-p", "_harness_pytest"]
        else:
            words[self.command.at] = "_harness_unittest"
        env["PYTHONPATH"] = f"{path}:{_PLUGINS}" if path else str(_PLUGINS)
        env["HARNESS_TESTS"] = str(self.folder / _RECORD)
        if self.command.only:
            (self.folder / _ONLY_FILE).write_text(json.dumps(self.command.only), encoding="utf-8")
            env["HARNESS_TESTS_ONLY"] = str(self.folder / _ONLY_FILE)
        return words

    def added_to(self, ran: Ran, device: Device) -> Ran:
        """Return the result of a run with its tests. If the process died, the test in which it died is an error."""
        record, ran = _without_machine_faults(read_record(self.folder / _RECORD), ran, device)
        if ran.outcome is Outcome.COMPLETED and not record.tests and _RAN_NONE.search(ran.tail):
            # Up to Python 3.11, unittest has exit code 0 although it ran no tests.
            ran = evolve(ran, outcome=Outcome.EXITED, detail=NO_TESTS)
        if ran.outcome is Outcome.COMPLETED and any(test.outcome.is_failure for test in record.tests):
            ran = evolve(ran, outcome=Outcome.EXITED)  # something ended the process with exit code 0
        elif ran.outcome is Outcome.COMPLETED and record.running and not (record.over or record.ended):
            ran = evolve(ran, outcome=Outcome.EXITED, detail="exit code 0")
        died = _last_words(ran, record)
        tests = record.tests
        if died is not None:
            places = record.running or (EXIT if record.over and tests else WHOLE_RUN,)
            tests += tuple(TestResult(test, TestOutcome.ERROR, died) for test in places)
        return evolve(
            ran,
            tests=bounded(tests),
            detail=_detail(self.command.tool, ran, tests, record) + record.complaint,
            loaded=dict(record.loaded),
        )


def add_startup(env: dict[str, str], file: Path, outside: Mapping[str, Any]) -> None:
    """Have each Python process of a command record what it uses besides its environment, as the file will say."""
    file.write_bytes(marshalled(outside))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_STARTUP), env.get("PYTHONPATH", ""))))
    env["HARNESS_OUTSIDE"] = str(file)


@frozen
class TracedCommand:
    """Has each Python process of a command record which installed files it used, and what ran in those to trace.

    `traced` is what `Job.traced` returns.
    """

    traced: Mapping[str, Any]
    folder: Path

    def start(self, argv: Sequence[str], env: dict[str, str]) -> list[str]:
        """Return the command to start, and add the variables that it needs to `env`."""
        self.folder.mkdir()
        (self.folder / "traced.json").write_text(json.dumps(self.traced), encoding="utf-8")
        env["HARNESS_TRACED"] = str(self.folder)
        return list(argv)

    def added_to(self, ran: Ran, _: Device) -> Ran:
        """Return the result of a run with what its processes have recorded."""
        loaded: dict[str, set[str]] = {}
        called: dict[str, dict[str, int]] = {}
        lines: dict[str, set[int]] = {}
        counts: dict[str, dict[str, tuple[int, int]]] = {}
        for path in sorted(self.folder.glob("process-*.json"))[:_MOST_PROCESSES]:
            with contextlib.suppress(Unreadable):
                record = _object(content_of(path, REPORT_LIMIT) or b"")
                for name, files in (valid(record.get("loaded"), dict[str, tuple[str, ...]]) or {}).items():
                    loaded.setdefault(name, set()).update(files)
                trace = valid(record.get("trace"), Trace) or Trace()
                for file, functions in trace.called.items():
                    called.setdefault(file, {}).update(functions)
                for file, numbers in trace.lines.items():
                    lines.setdefault(file, set()).update(numbers)
                for file, rows in trace.counts.items():
                    known = counts.setdefault(file, {})
                    for name, (calls, made) in rows.items():
                        before = known.get(name, (0, 0))
                        known[name] = (before[0] + calls, before[1] + made)
        return evolve(
            ran,
            loaded={name: tuple(sorted(files)) for name, files in loaded.items()},
            trace=Trace(called, {file: tuple(sorted(numbers)) for file, numbers in lines.items()}, counts),
        )


def read_record(path: Path) -> Record:
    """Read the record at `path`. Drops invalid results; the record of an unreadable file has only a complaint."""
    try:
        content = content_of(path, _RECORD_LIMIT)
    except Unreadable as why:
        return Record(complaint=f"; the record of its tests {why}")
    results: dict[str, TestResult] = {}
    running: dict[str, None] = {}
    loaded: dict[str, tuple[str, ...]] = {}
    over = ended = False
    for line in (content or b"").splitlines():
        entry = _object(line)
        if isinstance(entry.get("start"), str) and len(running) < TESTS_LIMIT:
            running[plain(entry["start"])] = None
        elif isinstance(entry.get("test"), str) and len(results) < TESTS_LIMIT:
            name, seconds = plain(entry["test"]), entry.get("seconds", 0.0)
            running.pop(name, None)
            with contextlib.suppress(ValueError):
                outcome = TestOutcome(entry.get("outcome", ""))
                duration = float(seconds) if type(seconds) in (int, float) else 0.0
                results[name] = TestResult(name, outcome, valid(entry.get("exception"), RaisedException), duration)
        elif entry.get("over") is True:
            over = True
        elif entry.get("end") is True:
            ended, loaded = True, valid(entry.get("loaded"), dict[str, tuple[str, ...]]) or {}
    owners = {file: name for name, files in loaded.items() for file in files}
    tests = tuple(evolve(result, exception=_with_packages(result.exception, owners)) for result in results.values())
    return Record(tests, tuple(running), over, ended, loaded)


def _without_machine_faults(record: Record, ran: Ran, device: Device) -> tuple[Record, Ran]:
    """Count the tests that the machine failed as skipped; it failed the run if no other test failed."""
    faults = {test.id: fault for test in record.tests if (fault := _machine_fault(test, device))}
    failed = [test for test in record.tests if test.outcome.is_failure]
    if ran.exit_code in (None, 0) or not failed:
        return record, ran
    tests = (evolve(test, outcome=TestOutcome.SKIPPED) if test.id in faults else test for test in record.tests)
    if len(faults) == len(failed):
        ran = evolve(ran, outcome=Outcome.MACHINE_FAILED, detail=f"{faults[failed[0].id]} ({failed[0].id})")
    elif ran.outcome is Outcome.MACHINE_FAILED:  # as its output says, which has the failures of all tests
        ran = evolve(ran, outcome=Outcome.EXITED, detail=f"exit code {ran.exit_code}")
    return evolve(record, tests=tuple(tests)), ran


def _machine_fault(test: TestResult, device: Device) -> str:
    """Say how the machine failed a test, "" if it did not."""
    if not test.outcome.is_failure or test.exception is None:
        return ""
    texts = (f"{raised.name}: {raised.message}" for raised in test.exception.chain())
    outcome, detail = outcome_of_text(texts, device) or (None, "")
    return detail if outcome is Outcome.MACHINE_FAILED else ""


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
    is_crash_at_exit = record.over and ran.outcome is Outcome.CRASHED
    if not in_test and not is_crash_at_exit and any(test.outcome.is_failure for test in record.tests):
        return None
    in_test = bool(record.running)  # pytest.exit also ends the record
    where = " in this test" if in_test else ""
    match ran.outcome:
        case Outcome.CRASHED:
            return RaisedException("Crashed", ran.detail)
        case Outcome.TIMED_OUT:
            return RaisedException("TimedOut", f"the run timed out{where}")
        case Outcome.EXITED if in_test:
            return RaisedException("Exited", f"the process ended{where} with exit code {ran.exit_code}")
        case Outcome.EXITED if ran.exit_code not in (0, 5) and record.over and record.tests:
            return RaisedException("Exited", _error_line(ran.tail) or f"exit code {ran.exit_code} after all tests")
        case Outcome.EXITED if ran.exit_code not in (0, 5):
            return RaisedException("Exited", _last_line(ran.tail) or ran.detail)
        case _:
            return None


def _detail(tool: str, ran: Ran, tests: tuple[TestResult, ...], record: Record) -> str:
    """One sentence about how the run ended."""
    running = "" if record.ended or not record.running else f" in {_named(record.running)}"
    if running or ran.outcome is not Outcome.EXITED:
        return ran.detail + ("" if ran.outcome is Outcome.COMPLETED else running)
    failed = [test.id for test in tests if test.outcome.is_failure and test.id not in (WHOLE_RUN, EXIT)]
    summary = f"{len(failed)} of {len(tests)} tests failed: {_named(failed)}" if failed else ""
    if failed and tool == "pytest" and not any("::" in test for test in failed):
        summary = f"could not import {_named(failed)}"
    end = _PYTEST_ENDS.get(ran.exit_code or 0) if tool == "pytest" or ran.exit_code == 5 else None
    whole = next((test.exception for test in tests if test.id in (WHOLE_RUN, EXIT)), None)
    if whole is not None and not summary:
        summary = f"{whole.name}: {one_line(whole.message, 200)}"
    if end is not None:
        return f"{end} (exit code {ran.exit_code})" + (f": {summary}" if summary else "")
    return summary or ran.detail


def _last_line(text: str) -> str:
    """The last non-empty line, where pytest puts a usage error, without its mark of an error."""
    return _error_line(text) or next(reversed(_lines(text)), "")


def _error_line(text: str) -> str:
    """The last line that reports an error; "" if none does."""
    return next((line for line in reversed(_lines(text)) if _ERROR.search(line)), "")


def _lines(text: str) -> list[str]:
    return [line.strip().removeprefix("E  ").strip() for line in text.splitlines() if line.strip()]


def _named(tests: Sequence[str]) -> str:
    return tests[0] + (f" and {len(tests) - 1} more" if len(tests) > 1 else "")
