"""Collects the result of each test from a test command: injects our plugin and reads its record.

A process that runs other people's code writes the record, so nothing in it is trusted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from harness.model import Outcome, RaisedException, TestOutcome, TestResult
from harness.model.observation import TESTS_LIMIT, WHOLE_RUN, bounded
from harness.model.text import one_line, plain
from harness.run.child_report import Unreadable, content_of, exception_of
from harness.run.commands import TestTool, collecting, recognised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.run.commands import TestCommand
    from harness.run.result import Ran

_PLUGINS = Path(__file__).with_name("inside") / "collect"
_RECORD = "tests.jsonl"
_ONLY = "only.json"
_RECORD_LIMIT = 128 * 1024 * 1024
_PYTEST_ENDS = {
    2: "pytest was interrupted",
    3: "pytest or one of its plugins failed",
    4: "pytest could not start",
    5: "no tests were found",
}
_NO_TESTS = (0, 5)
_UNITTEST_ENDS = {5: "no tests were found"}


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
        if self.command.only:
            (self.folder / _ONLY).write_text(json.dumps(self.command.only), encoding="utf-8")
        words, variables = collecting(
            evolve(self.command, argv=tuple(argv)),
            folder=str(_PLUGINS),
            results=str(self.folder / _RECORD),
            only_file=str(self.folder / _ONLY),
            given=env,
        )
        env.update(variables)
        return list(words)

    def added_to(self, ran: Ran) -> Ran:
        """Return the result of a run with its tests. If the process died, the test in which it died is an error."""
        record = read_record(self.folder / _RECORD)
        died = _last_words(ran, record)
        tests = record.tests
        if died is not None:
            tests += tuple(TestResult(test, TestOutcome.ERROR, died) for test in record.running or (WHOLE_RUN,))
        return evolve(
            ran,
            tests=bounded(tests),
            detail=_detail(self.command.tool, ran, tests, record) + record.complaint,
            loaded={name: tuple(files) for name, files in record.loaded.items()},
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
            ended, loaded = True, _loaded(told.get("loaded"))
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


def _loaded(told: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(told, dict):
        return {}
    return {
        plain(name): tuple(plain(file) for file in files if isinstance(file, str))
        for name, files in told.items()
        if isinstance(name, str) and isinstance(files, list)
    }


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
        case Outcome.EXITED if ran.exit_code not in _NO_TESTS:
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
