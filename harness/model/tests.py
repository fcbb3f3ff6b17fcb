"""The result of one test, as pytest or unittest reported it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from itertools import islice

from attrs import evolve, frozen

from harness.model.raised import RaisedException

TESTS_LIMIT = 20_000
MESSAGE_LIMIT = 4_000
FRAMES_LIMIT = 60
CAUSES_LIMIT = 10
WHOLE_RUN = "<run>"


class TestOutcome(enum.StrEnum):
    """The outcome of one test, with pytest's names."""

    __test__ = False  # pytest would collect a class with this name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # a fixture, setUp or the import of its module failed
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"

    @property
    def is_failure(self) -> bool:
        """Whether the test tool counts it as a failure."""
        return self in (TestOutcome.FAILED, TestOutcome.ERROR)


@frozen
class TestResult:
    """One test, or one module, class or `conftest.py` that could not be set up (an ERROR).

    `id` is the test tool's name for it: `tests/test_a.py::test_b[1]` for pytest, `tests.test_a.TestB.test_c` for
    unittest, and `WHOLE_RUN` for a failure that ended the run before or between tests. `duration_s` is in seconds.
    """

    __test__ = False

    id: str
    outcome: TestOutcome
    exception: RaisedException | None = None
    duration_s: float = 0.0


def bounded(results: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """Return the first 20,000 results, with long messages and tracebacks cut in the middle."""
    return tuple(
        evolve(result, exception=_bounded_exception(result.exception)) for result in islice(results, TESTS_LIMIT)
    )


def _bounded_exception(raised: RaisedException | None, depth: int = 0) -> RaisedException | None:
    if raised is None or depth == CAUSES_LIMIT:
        return None
    frames, half = raised.frames, FRAMES_LIMIT // 2
    return evolve(
        raised,
        message=_cut(raised.message),
        frames=frames if len(frames) <= FRAMES_LIMIT else frames[:half] + frames[-half:],
        cause=_bounded_exception(raised.cause, depth + 1),
    )


def _cut(message: str) -> str:
    if len(message) <= MESSAGE_LIMIT:
        return message
    head = MESSAGE_LIMIT * 3 // 4
    return f"{message[:head]} … {message[head + 3 - MESSAGE_LIMIT :]}"
