"""Runs unittest and records the result of each test.

Started as `python -m _harness_unittest ...`. Output and exit code are the same as unittest's.
"""

# ruff: noqa: N802, SLF001 - the names are those of unittest

from __future__ import annotations

import re
import runpy
import sys
import unittest
import unittest.loader
import unittest.main
from time import perf_counter as _now
from typing import Any

from _harness_tests import Recorder, only  # type: ignore[import-not-found]

__unittest = True
_HOLDER = re.compile(r"^(setUp|tearDown)(Module|Class) \((?P<name>.+)\)$")


_of_outer_run = [Recorder()]  # now, because tests may change the environment later; others write nothing


class _RecordingResult(unittest.TextTestResult):
    """unittest's result object, which also writes the record. Only the first instance in a process writes."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._recorder = _of_outer_run.pop() if _of_outer_run else Recorder()
        self._outcome = ""
        self._exception: Any = None
        self._begun = 0.0

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._outcome, self._exception, self._begun = "", None, _now()
        self._recorder.start(_name(test))

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        if self._outcome:
            self._recorder.result(_name(test), self._outcome, self._exception, _now() - self._begun)

    def stopTestRun(self) -> None:
        super().stopTestRun()
        self._recorder.tests_over()

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._outcome = self._outcome or "passed"

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._failed("failed", err[1])

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        error = getattr(test, "harness_raised", None) or err[1]
        holder = _HOLDER.match(test.id()) if type(test).__name__ == "_ErrorHolder" else None
        if holder is None:
            self._failed("error", error)
        else:
            self._recorder.result(holder["name"], "error", self._recorder.describe(error), 0.0)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed("failed" if issubclass(err[0], test.failureException) else "error", err[1])

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._outcome = self._outcome or "skipped"

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._outcome = "xfailed"

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._outcome = "xpassed"

    def _failed(self, outcome: str, error: BaseException) -> None:
        """Note a failure. Only the first one counts: a failure in tearDown mostly follows from it."""
        if self._outcome not in ("failed", "error"):
            self._outcome = outcome
            self._exception = self._recorder.describe(error)


def _name(test: Any) -> str:
    """The name of a test; for a module that fails to import, the name of the module."""
    return getattr(test, "harness_module", None) or str(test.id())


def _keep_real_exceptions() -> None:
    """Attach the exception to the placeholder of a module that fails to import, which has only its text."""
    loader = unittest.loader.TestLoader
    load, make = loader.loadTestsFromName, unittest.loader._make_failed_test  # type: ignore[attr-defined]
    asked: list[str] = []

    def loadTestsFromName(self: Any, name: str, module: Any = None) -> Any:
        asked.append(name)
        try:
            return load(self, name, module)
        finally:
            asked.pop()

    def make_failed_test(name: str, exception: Any, suite_class: Any, message: str) -> Any:
        suite, words = make(name, exception, suite_class, message)
        parts = asked[-1].split(".") if asked else []
        full = ".".join(parts[: parts.index(name) + 1]) if name in parts else name
        for test in suite:
            test.harness_raised = sys.exc_info()[1] or exception
            test.harness_module = full
        return suite, words

    loader.loadTestsFromName = loadTestsFromName  # type: ignore[method-assign]
    unittest.loader._make_failed_test = make_failed_test  # type: ignore[attr-defined]


def _restrict(asked: frozenset[str]) -> None:
    """Load only the modules of the wanted tests, and run only these tests."""
    program: Any = unittest.TestProgram
    create = program.createTests

    def createTests(self: Any, *args: Any, **more: Any) -> None:
        names = list(getattr(self, "testNames", None) or ())
        near = [name for name in names if _near(_dotted(name), asked)]
        if near:
            self.testNames = near
        self.failfast = False
        create(self, *args, **more)
        self.test = _kept(self.test, asked)

    program.createTests = createTests


def _dotted(name: str) -> str:
    """The name of a module that may be given by its file."""
    return name[:-3].replace("/", ".").replace("\\", ".") if name.endswith(".py") else name


def _near(name: str, asked: frozenset[str]) -> bool:
    return any(one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.") for one in asked)


def _kept(suite: Any, asked: frozenset[str]) -> Any:
    """The suite with only the wanted tests, in their original order."""
    kept = [
        _kept(one, asked) if isinstance(one, unittest.TestSuite) else one
        for one in suite
        if isinstance(one, unittest.TestSuite) or _is_asked(one, asked)
    ]
    return type(suite)(kept)


def _is_asked(test: Any, asked: frozenset[str]) -> bool:
    name = _name(test)
    if any(name == one or name.startswith(f"{one}.") for one in asked):
        return True
    return hasattr(test, "harness_module") and any(one.startswith(f"{name}.") for one in asked)


def _main() -> None:
    unittest.TextTestRunner.resultclass = _RecordingResult
    _keep_real_exceptions()
    if asked := frozenset(only()):
        _restrict(asked)
    runpy.run_module("unittest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
