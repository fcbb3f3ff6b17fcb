"""The pytest plugin: `pytest --harness-bisect` goes on with the tests that failed.

It imports nothing of the harness, which runs as a process of its own after pytest has ended, so it costs nothing where
the option is not given. In a run of the harness itself it does nothing.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_MOST_TESTS = 200  # more would make the command too long; then their files are named
_IN_A_PROBE = "HARNESS_ROOT"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("harness", "finding the upgrade that broke tests (regression-harness)")
    group.addoption(
        "--harness-bisect",
        action="store_true",
        help="after a run with failures, find the upgrade that broke these tests with `harness bisect`",
    )
    group.addoption(
        "--harness-options",
        default="",
        metavar="OPTIONS",
        help="options for `harness bisect`, in quotes: --harness-options='--good 2025-06-20 --depth file'",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the failures, if that was asked for; workers of pytest-xdist leave it to their controller."""
    is_worker = hasattr(config, "workerinput")
    if config.getoption("harness_bisect") and not is_worker and _IN_A_PROBE not in os.environ:
        config.pluginmanager.register(_Failed(config), "harness-bisect-failures")


class _Failed:
    """The tests and modules that failed in this run, in order."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.ids: dict[str, None] = {}
        self.is_over = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failed test, or one whose set-up failed."""
        if report.failed:
            self.ids[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that can't be imported."""
        if report.failed and report.nodeid:
            self.ids[report.nodeid] = None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Note whether the run came to its end: 1 is failed tests, 2 also modules that can't be imported."""
        self.is_over = int(exitstatus) in (1, 2) and bool(self.ids)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Ask the harness, now that pytest has printed everything."""
        if not self.is_over:
            return
        names = list(self.ids)
        if len(names) > _MOST_TESTS:
            names = list(dict.fromkeys(name.partition("::")[0] for name in names))
        command = shlex.join(["pytest", *names])
        words = ["-m", "harness", "bisect", "--run", command, *shlex.split(config.getoption("harness_options"))]
        shown = command if len(names) < 4 else f"pytest with the {len(names)} that failed"
        print(f"\nharness bisect: looking for the upgrade that broke {shown}", flush=True)  # noqa: T201
        subprocess.run([sys.executable, *words], cwd=config.rootpath, check=False)
