"""An observation: what happened when one repro ran in one environment, without a verdict."""

from __future__ import annotations

import enum
from typing import Any

from attrs import field, frozen

from harness.model.combination import Device
from harness.model.lock import Lock
from harness.model.raised import RaisedException
from harness.model.tests import TestResult
from harness.model.trace import Trace


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
    DEVICE_FAILED = "device-failed"  # driver mismatch, no kernel image, device lost or busy
    EMULATION_GAP = "emulation-gap"  # called something that the stand-in for CUDA does not have
    WRONG_ENVIRONMENT = "wrong-environment"  # the run saw other packages than its lock

    @property
    def ran(self) -> bool:
        """Whether the repro was started at all."""
        return self not in (Outcome.UNRESOLVABLE, Outcome.UNINSTALLABLE, Outcome.NO_DEVICE, Outcome.NO_PROGRAM)

    @property
    def may_show_bug(self) -> bool:
        """Whether the repro got far enough to show its bug."""
        return self not in _SHOWS_NOTHING


_SHOWS_NOTHING = frozenset(
    {
        Outcome.UNRESOLVABLE,
        Outcome.UNINSTALLABLE,
        Outcome.NO_DEVICE,
        Outcome.DEVICE_FAILED,
        Outcome.EMULATION_GAP,
        Outcome.WRONG_ENVIRONMENT,
        Outcome.DECLINED,
        Outcome.OUT_OF_MEMORY,
        Outcome.NO_REPORT,
        Outcome.NO_PROGRAM,
    }
)


@frozen
class Observation:
    """One run of one repro in one environment.

    Durations are in seconds, memory in bytes. `detail` is one sentence on what happened; `started` is an ISO 8601 time
    in UTC; `loaded` maps each distribution to its files that were used; `machine` describes the device (name, driver,
    memory, ...); `drift` says where the lock differs from the requested holds; `log` is a path relative to the results
    folder; `mixture` says which files of the environment do not match its lock; `trace` is the recording of a traced
    run. `tests` has the result of each test of pytest or unittest, and is empty for a script. `mistake` says what is
    wrong with the command, if it failed for that reason. `altered` lists the files that the run changed, added or
    removed, relative to its environment, which was then discarded.
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
