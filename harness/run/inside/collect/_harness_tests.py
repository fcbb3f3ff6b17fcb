"""The record of a test run: one line of JSON when a test starts and one when it ends.

It writes each line immediately, so the lines survive a crash. `HARNESS_TESTS` names the record, `HARNESS_TESTS_ONLY` a
JSON file with the list of the only tests to run.
"""

# Tests may replace anything, so bind everything that is needed later here. Importing pathlib takes time.
# ruff: noqa: PTH109, PTH119, PTH123

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import sys
from json import dumps as _dumps
from os import close as _close
from os import getpid as _getpid
from os import open as _open
from os import write as _write
from typing import Any

import _harness_report as _report  # type: ignore[import-not-found]

WHOLE_RUN = "<run>"
EXIT = "exit code"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_MOST_BYTES = 32 * 1024 * 1024  # of exceptions; later tests keep only their outcome
# The outermost frames belong to the test tool.
_TOOL_FRAME = re.compile(
    r"(^|/)(_pytest|pluggy|pytest_asyncio|xdist|unittest|importlib|asyncio)/|^<frozen |(^|/)(runpy|pytest)\.py$"
    r"|/_harness_\w+\.py$|(^|/)bin/(py\.test|pytest)$"
)


class Recorder:
    """Writes the record of this process; without HARNESS_TESTS, and in forked children, it writes nothing.

    It takes that variable away, so that child processes write nothing either.
    """

    def __init__(self) -> None:
        self._path = os.environ.pop("HARNESS_TESTS", None)
        self._pid = _getpid()
        self._roots = [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]
        driver = sys.modules.get("_harness_child_driver")  # of a fork
        self._roots += driver.former_packages() if driver is not None else []
        self._places = _report.Places(self._roots, start=os.getcwd())
        self._bytes = 0
        self._files: set[str] = set()
        self._closed = self._path is None
        atexit.register(self.close)
        self._show = sys.excepthook
        sys.excepthook = self._uncaught

    def describe(self, error: BaseException) -> dict[str, Any]:
        """Describe an exception as plain data, without the outer frames of the test tool."""
        described: dict[str, Any] = _report.described(error, self._places)
        one: Any = described
        while one is not None:
            frames = one["frames"]
            while frames and _TOOL_FRAME.search(frames[0]["file"]):
                del frames[0]
            for frame in frames:
                frame["package"] = frame["file"].split("/")[0] if frame["installed"] else ""
            one = one["cause"]
        return described

    def start(self, test: str) -> None:
        """Record that a test starts. If no result follows, the process died in it."""
        self._line({"start": test})

    def result(self, test: str, outcome: str, exception: dict[str, Any] | None, seconds: float) -> None:
        """Record the result of a test; `outcome` is one of pytest's, `seconds` the duration."""
        told: dict[str, Any] = {"test": test, "outcome": outcome, "seconds": round(seconds, 4)}
        if exception is not None:
            self._files |= _report.installed_files(exception)
            text = _dumps(exception)
            self._bytes += len(text)
            if self._bytes <= _MOST_BYTES:
                told["exception"] = exception
        self._line(told)

    def tests_over(self) -> None:
        """Record that no more tests start: a process that ends badly from now on does so after its tests."""
        self._line({"over": True})

    def run_failed(self, error: BaseException) -> None:
        """Record an exception that ended the whole run."""
        self.result(WHOLE_RUN, "error", self.describe(error), 0.0)

    def _uncaught(self, kind: type, error: BaseException, trace: Any) -> None:
        """Record an exception that ends the process, before it is printed."""
        if not isinstance(error, KeyboardInterrupt):
            self.run_failed(error)
        self._show(kind, error, trace)

    def close(self) -> None:
        """Record that the run ended, and which installed files it used."""
        if self._closed or _getpid() != self._pid:
            return
        self._closed = True
        told: dict[str, Any] = {"end": True}
        with contextlib.suppress(Exception):  # the results are already written
            used = set(_report.used_files((), self._roots)) | self._files
            owners = _report.owners(used, _report.distributions(self._roots), self._roots)
            told["loaded"] = _report.by_distribution(owners)
        self._line(told)

    def _line(self, told: dict[str, Any]) -> None:
        if self._path is None or _getpid() != self._pid:
            return
        try:
            data = (_dumps(told, default=str) + "\n").encode("utf-8", "backslashreplace")
            file = _open(self._path, _FLAGS, 0o600)
            try:
                while data:
                    data = data[_write(file, data) :]
            finally:
                _close(file)
        except OSError:  # a full disk must not turn into a failing test
            pass


def only() -> list[str]:
    """Return the only tests to run; empty for all, as for a failure that belongs to no test."""
    path = os.environ.get("HARNESS_TESTS_ONLY")
    if not path:
        return []
    with open(path, encoding="utf-8") as file:
        names: list[str] = json.load(file)
    return [] if {WHOLE_RUN, EXIT}.intersection(names) else names
