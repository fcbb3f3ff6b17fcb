"""Turns what a run left behind (how it ended, report, metrics, log) into its result.

It works the same for a run on this machine and for one whose files were copied from another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.run.child_report import ChildReport, Unreadable, read_metrics, read_report
from harness.run.classify import classify
from harness.run.launch import LOG_KEPT
from harness.run.process import EndReason

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model import Device, Outcome, RaisedException, TestResult, Trace
    from harness.run.process import Ended, Limits


@frozen
class Ran:
    """The result of one run.

    `installed` has the name and version of each distribution, `loaded` its files that the run used, `machine` facts
    about the device; `python` is the interpreter's full version. All four are empty for a command, and for a script
    that never returned to the child driver. `duration_s` is the time in seconds from start to end of the interpreter;
    `peak_memory` is in bytes; `tail` is the end of the log; `trace` is the recorded trace, None without one; `tests`
    has the results of pytest or unittest. `mistake` says what is wrong with the command, if that is why it failed.
    """

    outcome: Outcome
    detail: str
    exit_code: int | None
    duration_s: float
    peak_memory: int | None
    exception: RaisedException | None = None
    metrics: dict[str, float] = field(factory=dict)
    loaded: dict[str, tuple[str, ...]] = field(factory=dict)
    installed: tuple[tuple[str, str], ...] = ()
    machine: dict[str, Any] = field(factory=dict)
    python: str = ""
    tail: str = ""
    trace: Trace | None = None
    tests: tuple[TestResult, ...] = ()
    mistake: str = ""


@frozen
class LeftBehind:
    """What a run left behind: how it ended, the end of its log, and the paths of its report and metrics.

    `is_command` is true for a command, which has only an exit code, and false for a script under the child driver.
    """

    ended: Ended
    tail: str
    report: Path
    metrics: Path
    is_command: bool = False


def result_of(left: LeftBehind, *, device: Device, limits: Limits) -> Ran:
    """Return the result of a run. An unreadable report counts as missing, and `detail` says so."""
    ended, complaint = left.ended, ""
    report: ChildReport | None = None
    if not left.is_command:
        try:
            report = read_report(left.report)
        except Unreadable as why:
            complaint = f"; its report {why}"
    outcome, detail = classify(
        ended, report, device=device, limits=limits, printed=left.tail, is_command=left.is_command
    )
    metrics, about_metrics = read_metrics(left.metrics)
    complaint += about_metrics
    if ended.output > LOG_KEPT:
        complaint += f"; the log leaves out {ended.output - LOG_KEPT} bytes of its output"
    if ended.left:
        complaint += f"; {ended.left} of its processes could not be killed"
    killed = ended.reason is not EndReason.ENDED
    told = report if report is not None else ChildReport("")
    return Ran(
        outcome=outcome,
        detail=detail + complaint,
        exit_code=None if killed or ended.signal else ended.returncode,
        duration_s=ended.seconds,
        peak_memory=ended.peak_memory or None,
        exception=told.exception,
        metrics=metrics,
        loaded=told.loaded or {},
        installed=told.installed,
        machine=told.machine or {},
        python=told.python,
        tail=left.tail,
        trace=told.trace,
    )
