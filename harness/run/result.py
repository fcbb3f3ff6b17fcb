"""Turns what a run left behind (how it ended, report, metrics, log) into its result and outcome. No verdict.

It works the same for a run on this machine and for one whose files were copied from another machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.model import Outcome
from harness.model.text import one_line
from harness.run.child_report import ChildReport, Unreadable, read_metrics, read_report
from harness.run.devices import outcome_of_text
from harness.run.launch import LOG_KEPT
from harness.run.process import EndReason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.model import Device, RaisedException, TestResult, Trace
    from harness.run.launch import Limits
    from harness.run.process import Ended

_DECLINED = 125
_WIDTH = 300
_NOT_FOUND = 127
_KILLED_IN_SHELL = 128 + 9  # a shell's exit code for a command killed by SIGKILL
_MEMORY_TYPES = frozenset({"MemoryError", "OutOfMemoryError"})
# Without a report there is only the output: look for the line of the exception itself, not for any mention of it.
_ERROR_LINE = re.compile(r"^.*(?:Error\b|Exception\b|terminate called|what\(\):).*$", re.MULTILINE)


@frozen
class Ran:
    """The result of one run.

    `installed` has the name and version of each distribution, `loaded` its files that the run used, `machine` facts
    about the device; `python` is the interpreter's full version. All four are empty for a command, and for a script
    that never returned to the child driver. `duration_s` is the time in seconds from start to end of the interpreter;
    `peak_memory` is in bytes; `tail` is the end of the log; `trace` is the recorded trace, None without one; `tests`
    has the results of pytest or unittest. `mistake` says what is wrong with the command, if that is why it failed.
    `wrote` is the hash of what a first step wrote.
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
    wrote: str = ""


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


def classify(
    ended: Ended,
    report: ChildReport | None,
    *,
    device: Device,
    limits: Limits,
    printed: str = "",
    is_command: bool = False,
) -> tuple[Outcome, str]:
    """Return the outcome of a run, and one sentence about it.

    `report` is None for a command, and for a script that never returned to the child driver; `printed` is the end of
    stdout and stderr.
    """
    if report is not None and report.end == "raised":
        return _raised(report, device)
    stopped = _stopped(ended, report, limits)
    if stopped is not None:
        return stopped
    if ended.returncode == 0:
        return (Outcome.COMPLETED, "ran to its end") if is_command else _last_word(report)
    if ended.returncode == _DECLINED:
        return Outcome.DECLINED, f"exit code {_DECLINED}: the repro can't tell"
    if report is None:
        found = _by_texts(_ERROR_LINE.findall(printed), device)
        if found is not None:
            return found
    if ended.signal is not None:
        late = " after the script had ended" if report is not None and report.end == "completed" else ""
        return Outcome.CRASHED, f"killed by {ended.signal}{late}"
    message = one_line(report.message, _WIDTH) if report is not None else ""
    return Outcome.EXITED, f"exit code {ended.returncode}" + (f": {message}" if message else "")


def _stopped(ended: Ended, report: ChildReport | None, limits: Limits) -> tuple[Outcome, str] | None:
    """The outcome of a run that was stopped, None if it ended by itself."""
    match ended.reason:
        case EndReason.TIMEOUT:
            if report is not None and report.end == "completed":
                return (
                    Outcome.TIMED_OUT,
                    f"timed out after {limits.wall_s:g} s: the script ended, its process did not",
                )
            return Outcome.TIMED_OUT, f"timed out after {limits.wall_s:g} s"
        case EndReason.MEMORY:
            return Outcome.OUT_OF_MEMORY, f"used more than {_size(limits.bytes)} of memory"
        case EndReason.OUTPUT:
            return Outcome.TOO_MUCH_OUTPUT, f"printed more than {_size(limits.output)}"
        case EndReason.LOST:
            return Outcome.NO_REPORT, "its guard process was killed, so how it ended is not known"
    if ended.oom_killed and (ended.signal == "SIGKILL" or ended.returncode == _KILLED_IN_SHELL):
        return Outcome.OUT_OF_MEMORY, "killed by the system: out of memory"
    return None


def _last_word(report: ChildReport | None) -> tuple[Outcome, str]:
    """The outcome of a script with exit code 0: it completed only if the child driver saw its end."""
    match report.end if report is not None else None:
        case "completed":
            return Outcome.COMPLETED, "ran to its end"
        case "forked":
            why = "it exited while a forked copy was still running the script"
        case "exit":
            why = "it asked for a non-zero exit code"
        case _:
            why = "the process ended without a report (os._exit, os.execv, or a fork)"
    return Outcome.NO_REPORT, f"exit code 0, but it did not reach its end: {why}"


def not_started(command: str, why: str) -> tuple[Outcome, str, int]:
    """The outcome, a sentence and the exit code (as in a shell) of a command that the environment lacks."""
    return Outcome.EXITED, f"{command} can't be started: {why}", _NOT_FOUND


def _raised(report: ChildReport, device: Device) -> tuple[Outcome, str]:
    raised = report.exception
    detail = _titled(raised.name, raised.message) if raised is not None else "an unknown exception"
    if report.stage == "emulation":
        return Outcome.EMULATION_GAP, f"the stand-in for CUDA can't be set up: {detail}"
    for kind, message in report.chain:
        if kind.endswith("EmulationGap"):
            return Outcome.EMULATION_GAP, _titled(kind.rpartition(".")[2], message)
    # Causes (`raise ... from`) count; an exception that happened to be handled does not.
    explicit = list(raised.chain()) if raised is not None else []
    for one in explicit:
        if not _MEMORY_TYPES.isdisjoint(kind.rpartition(".")[2] for kind in (one.type, *one.bases)):
            return Outcome.OUT_OF_MEMORY, _titled(one.name, one.message)
    found = _by_texts((_titled(one.name, one.message) for one in explicit), device)
    return found if found is not None else (Outcome.RAISED, detail)


def _by_texts(texts: Iterable[str], device: Device) -> tuple[Outcome, str] | None:
    found = outcome_of_text(texts, device)
    return (found[0], one_line(found[1], _WIDTH)) if found is not None else None


def _titled(name: str, message: str) -> str:
    return f"{name}: {one_line(message, _WIDTH)}" if message.strip() else name


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
