"""A plugin for pytest 6 and later that records the result of each test. PYTEST_DONT_REWRITE

With xdist, a worker only attaches a description of the exception to its report; the process that collects the reports
writes the record.
"""

# Imports here become imports of the probed process, so pathlib is not used.
# ruff: noqa: PTH110, PTH118, PTH119, PTH120

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from _harness_tests import WHOLE_RUN, Recorder, only  # type: ignore[import-not-found]

_ATTRIBUTE = "harness_raised"
_INSTALLED = re.compile(r"^(?:[^:]*/)?(?:site|dist)-packages/")
_WORKER = re.compile(r"^worker 'gw\d+'")  # another one in each run
_recorder = Recorder()  # now, because tests may change the environment later


class _Test:
    """The result of one test, combined from the reports of its phases."""

    def __init__(self) -> None:
        self.outcome = ""
        self.exception: Any = None
        self.seconds = 0.0

    def add(self, report: Any) -> None:
        """Add the report of a phase. A failure stays; otherwise the later report counts."""
        self.seconds += getattr(report, "duration", 0.0)
        if report.outcome == "rerun":
            self.__init__()  # type: ignore[misc]
        elif report.failed:
            if self.outcome not in ("failed", "error"):
                self.outcome = "failed" if report.when == "call" else "error"
                self.exception = _exception_of(report)
        elif self.outcome not in ("failed", "error"):
            expected = hasattr(report, "wasxfail")
            if report.skipped:
                self.outcome = "xfailed" if expected else "skipped"
            elif report.when == "call":
                self.outcome = "xpassed" if expected else "passed"


_open_tests: dict[str, _Test] = {}


def _named(test: str) -> str:
    """The name of a test, the same in every environment, also for the tests of an installed package (`--pyargs`)."""
    return _INSTALLED.sub("site-packages/", test)


def _attach(report: Any, error: BaseException) -> None:
    """Attach the exception to the report as JSON, because xdist transfers only plain values."""
    told = _recorder.describe(error)
    if type(error).__name__ == "FixtureLookupError":  # its own message names the test, so that no two are alike
        told["message"] = getattr(error, "msg", "") or f"fixture {getattr(error, 'argname', '')!r} not found"
    setattr(report, _ATTRIBUTE, json.dumps(told))


def _exception_of(report: Any) -> Any:
    told = getattr(report, _ATTRIBUTE, None)
    if told is not None:
        return json.loads(told)
    # A strict xpass, the crash of an xdist worker, or a plugin's own failure has only a text and no exception.
    lines = [line for line in str(report.longrepr or "").splitlines() if line.strip()]
    message = _WORKER.sub("a worker", lines[-1].lstrip("E ").strip()) if lines else "failed"
    return {"type": "pytest.Failed", "message": message, "bases": [], "frames": [], "cause": None}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:  # noqa: ARG001 - pytest passes by name
    """Attach the exception of a failed test to its report, which otherwise has only the text."""
    outcome = yield
    if outcome.excinfo is None and call.excinfo is not None:
        error = call.excinfo.value
        if not isinstance(error, pytest.skip.Exception):
            _attach(outcome.get_result(), error)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: Any) -> Any:  # noqa: ARG001
    """Attach the exception of a module that fails to import to its report."""
    outcome = yield
    if outcome.excinfo is None:
        report = outcome.get_result()
        call = getattr(report, "call", None)
        if report.failed and call is not None and call.excinfo is not None:
            _attach(report, _behind(call.excinfo.value))


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: Any) -> Any:
    """Record a conftest.py that fails to import, which stops pytest before it runs any test."""
    outcome = yield
    if outcome.excinfo is not None:
        error = outcome.excinfo[1]
        path = str(getattr(error, "path", "") or "")
        root = str(getattr(early_config, "rootdir", "") or getattr(early_config, "rootpath", ""))
        name = os.path.relpath(path, root).replace(os.sep, "/") if path else WHOLE_RUN
        _recorder.result(name, "error", _recorder.describe(_behind(error)), 0.0)


def _behind(error: BaseException) -> BaseException:
    """The original exception, if pytest wrapped it into one of its own."""
    name = type(error).__name__
    if name == "ConftestImportFailure" and error.__cause__ is None:
        excinfo = getattr(error, "excinfo", None)  # pytest 6 and 7
        return excinfo[1] if excinfo else error
    if name in ("CollectError", "ConftestImportFailure") and error.__cause__ is not None:
        return error.__cause__
    return error


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Restrict the run to the modules of the wanted tests, by replacing the paths of the command.

    Also turn off options that stop after a failure, because each test may be examined separately.
    """
    config.option.continue_on_collection_errors = True
    config.option.maxfail = 0
    asked = only()
    if not asked:
        return
    root = str(getattr(config, "rootpath", None) or config.rootdir)
    files = dict.fromkeys(os.path.join(root, *one.split("::")[0].split("/")) for one in asked)
    places = [os.path.dirname(path) if os.path.basename(path) == "conftest.py" else path for path in files]
    if all(os.path.exists(path) for path in places):
        config.args[:] = places


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Deselect tests that are not wanted."""
    asked = frozenset(only())
    if not asked:
        return
    kept = [item for item in items if _is_asked(item.nodeid, asked)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not _is_asked(item.nodeid, asked)])
        items[:] = kept


def _is_asked(test: str, asked: frozenset[str]) -> bool:
    """Whether the test, its function, class, module or a folder's conftest.py is wanted."""
    test = _named(test)
    if test in asked:
        return True
    function = test.split("[", 1)[0]
    parts = function.split("::")
    if any("::".join(parts[:n]) in asked for n in range(1, len(parts) + 1)):
        return True
    folders = parts[0].split("/")[:-1]
    return any("/".join([*folders[:n], "conftest.py"]) in asked for n in range(len(folders) + 1))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record that a test starts."""
    _recorder.start(_named(nodeid))


def pytest_runtest_logreport(report: Any) -> None:
    """Add the result of a phase of a test."""
    _open_tests.setdefault(report.nodeid, _Test()).add(report)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Record the result of a test that has ended."""
    _write(nodeid)


def pytest_collectreport(report: Any) -> None:
    """Record a module, class or folder that could not be collected."""
    if report.failed:
        _recorder.result(_named(report.nodeid) or WHOLE_RUN, "error", _exception_of(report), 0.0)


def pytest_internalerror(excinfo: Any) -> None:
    """Record an internal error of pytest or of a plugin."""
    _recorder.run_failed(excinfo.value)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Record that the tests are over; plugins may still change the exit code."""
    _recorder.tests_over()


def pytest_unconfigure() -> None:
    """Finish the record."""
    for test in list(_open_tests):
        _write(test)
    _recorder.close()


def _write(test: str) -> None:
    ended = _open_tests.pop(test, None)
    if ended is not None and ended.outcome:
        _recorder.result(_named(test), ended.outcome, ended.exception, ended.seconds)
