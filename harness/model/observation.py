"""An observation: what happened when one repro ran in one environment, without a verdict.

Its parts are the exception that ended the run, the result of each test, and the trace of a traced run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from attrs import evolve, field, frozen

from harness.model.lock import Device, Lock, Pin


class Outcome(enum.StrEnum):
    """What happened to one probe."""

    COMPLETED = "completed"  # reached its end
    RAISED = "raised"  # ended with an exception
    EXITED = "exited"  # ended with a non-zero exit code and no exception
    DECLINED = "declined"  # exit code 125: the repro can't tell
    NO_REPORT = "no-report"  # a script that ended with exit code 0, or whose guard was killed, without reaching its end
    CRASHED = "crashed"  # killed by a signal that the harness did not send, such as SIGSEGV
    TIMED_OUT = "timed-out"  # stopped at its time limit
    OUT_OF_MEMORY = "out-of-memory"  # reached its memory limit, or a device has no memory left
    TOO_MUCH_OUTPUT = "too-much-output"  # printed more than 1 GiB
    UNRESOLVABLE = "unresolvable"  # no set of releases satisfies the requirements
    UNINSTALLABLE = "uninstallable"  # a package could not be installed
    NO_PROGRAM = "no-program"  # the environment lacks the program that a command starts
    NO_DEVICE = "no-device"  # no GPU, or none with enough free memory
    DEVICE_FAILED = "device-failed"  # driver mismatch, no kernel image
    MACHINE_FAILED = "machine-failed"  # GPU lost or shared, killed from outside, full disk, a server that fails
    EMULATION_GAP = "emulation-gap"  # called something that the stand-in for CUDA does not have
    NOT_MADE = "not-made"  # the first step failed, so that there is nothing to read
    WRONG_ENVIRONMENT = "wrong-environment"  # the run saw other packages than its lock

    @property
    def ran(self) -> bool:
        """Whether the repro was started at all."""
        return self not in _DID_NOT_RUN

    @property
    def may_show_bug(self) -> bool:
        """Whether the repro got far enough to show its bug."""
        return self not in _SHOWS_NOTHING


_DID_NOT_RUN = frozenset(
    {Outcome.UNRESOLVABLE, Outcome.UNINSTALLABLE, Outcome.NO_DEVICE, Outcome.NO_PROGRAM, Outcome.NOT_MADE}
)
_SHOWS_NOTHING = frozenset(
    {
        *_DID_NOT_RUN,
        Outcome.DEVICE_FAILED,
        Outcome.MACHINE_FAILED,
        Outcome.EMULATION_GAP,
        Outcome.WRONG_ENVIRONMENT,
        Outcome.DECLINED,
        Outcome.OUT_OF_MEMORY,
        Outcome.NO_REPORT,
    }
)


@frozen
class Observation:
    """One run of one repro in one environment.

    Durations are in seconds, memory in bytes. `detail` is one sentence on what happened; `started` is an ISO 8601 time
    in UTC; `installed` are the pins that took the place of those of the lock, as PyTorch's builds for CPUs do; `loaded`
    maps each distribution to its files that were used; `machine` describes where it ran: the device (name, driver,
    memory, reasons why its clock is slowed down), the versions of CUDA and torch, and the host as a hash;
    `drift` says where the lock differs from the requested holds; `log` is a path relative to the results folder;
    `mixture` says which files of the environment do not match its lock; `trace` is the recording of a traced run.
    `tests` has the result of each test of pytest or unittest, and is empty for a script. `mistake` says what is wrong
    with the command, if it failed for that reason. `altered` lists the files that the run changed, added or removed,
    relative to its environment, which was then discarded. `by_hand` is the verdict of a person who judged it, "" if
    nobody did; then outcome, exception and exit code say the same. `given` are the folders that it could read, by the
    variable that names them: the hash of the content ("tree"), what wrote it ("by") and in which run ("run"). `wrote`
    is the hash of what a first step wrote. `outside` are the files, folders and programs that the run used besides its
    environment and its project, with their hashes; it holds as long as they are the same.
    """

    key: str
    outcome: Outcome
    repro: str
    repro_digest: str
    device: Device
    detail: str = ""
    exception: RaisedException | None = None
    exit_code: int | None = None
    metrics: dict[str, float] = field(factory=dict)
    params: dict[str, Any] = field(factory=dict)
    lock: Lock | None = None
    requirements: tuple[str, ...] = ()
    as_of: str | None = None
    drift: tuple[str, ...] = ()
    machine: dict[str, Any] = field(factory=dict)
    installed: tuple[Pin, ...] = ()
    loaded: dict[str, tuple[str, ...]] = field(factory=dict)
    duration_s: float = 0.0
    setup_s: float = 0.0
    peak_memory: int | None = None
    started: str = ""
    attempt: int = 0
    log: str = ""
    mixture: str = ""
    trace: Trace | None = None
    tests: tuple[TestResult, ...] = ()
    mistake: str = ""
    altered: tuple[str, ...] = ()
    by_hand: str = ""
    given: dict[str, dict[str, str]] = field(factory=dict)
    wrote: str = ""
    outside: dict[str, str] = field(factory=dict)

    @property
    def measured(self) -> dict[str, float]:
        """The repro's metrics, then what the harness measures: seconds and MiB."""
        metrics = dict(self.metrics)
        if self.outcome.ran:
            metrics["duration_s"] = self.duration_s
        if self.peak_memory:
            metrics["peak_memory_mib"] = round(self.peak_memory / 2**20, 1)
        return metrics


@frozen
class StackFrame:
    """One frame of a traceback; sequences start with the outermost.

    `file` is relative to site-packages for installed code, and `package` is its distribution or top-level module.
    Otherwise `file` is the file name of the repro or an absolute path.
    """

    file: str
    line: int
    function: str
    package: str = ""
    text: str = ""


@frozen
class RaisedException:
    """An exception that ended a run or failed a test.

    `type` is the qualified name ("builtins.RuntimeError"); `bases` are those of its base classes; `cause` is the
    exception that it was explicitly raised from.
    """

    type: str
    message: str
    bases: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    cause: RaisedException | None = None

    @property
    def name(self) -> str:
        """The type without its module."""
        return self.type.rpartition(".")[2]

    def chain(self) -> Iterator[RaisedException]:
        """This exception, its cause, the cause of that, and so on."""
        raised: RaisedException | None = self
        while raised is not None:
            yield raised
            raised = raised.cause


TESTS_LIMIT = 20_000
MESSAGE_LIMIT = 4_000
FRAMES_LIMIT = 60
CAUSES_LIMIT = 10
WHOLE_RUN = "<run>"
EXIT = "exit code"


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
    unittest, `WHOLE_RUN` for a failure that ended the run before or between tests, and `EXIT` for an exit code or a
    crash after all tests, which none of them explains. `duration_s` is in seconds.
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


@frozen
class Trace:
    """What a traced run did: `called` maps each file and function to the rank of its last call.

    `lines` maps each file to the lines that ran. `counts` maps each file and function to the number of its calls and of
    the calls that it made, if they were counted.
    """

    called: dict[str, dict[str, int]] = field(factory=dict)
    lines: dict[str, tuple[int, ...]] = field(factory=dict)
    counts: dict[str, dict[str, tuple[int, int]]] = field(factory=dict)
