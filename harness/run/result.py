"""From what a run left behind - how it ended, the child driver's report, metrics, log - to what it came to.

It is the same for a run that has just ended here and for one that was brought back from elsewhere.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.errors import HarnessFault
from harness.model import Outcome, RaisedException, Returned, StackFrame, Trace
from harness.run.classify import Report, classify
from harness.run.launch import METRICS_LIMIT
from harness.run.process import EndReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.model import Device, TestResult
    from harness.run.process import Ended, Limits


@frozen
class Ran:
    """What one run came to.

    `installed` has name and version of each distribution, `loaded` the files of each that were used,
    `machine` what is known of the device; `python` is the interpreter's full version. All four are empty
    for a command, and for a script that never came back to the child driver. `duration_s` is in seconds
    from the start of the interpreter to its end; `peak_memory` in bytes; `tail` the end of the log; `trace` what
    was recorded, where that was asked for; `tests` has the results
    of a command that runs pytest or unittest.
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


@frozen
class LeftBehind:
    """What a run left: how it ended, the end of its log, and where its report and metrics would lie."""

    ended: Ended
    tail: str
    report: Path
    metrics: Path


def result_of(left: LeftBehind, *, device: Device, limits: Limits) -> Ran:
    """What a run came to. Raises `HarnessFault` where the child driver's report can't be read."""
    ended, told = left.ended, _read_report(left.report)
    exception = _exception(told.get("exception"))
    report = (
        Report(
            end=told["end"],
            stage=told["stage"],
            message=told.get("message", ""),
            exception=exception,
            chain=tuple((kind, message) for kind, message in told.get("chain", ())),
        )
        if told
        else None
    )
    outcome, detail = classify(ended, report, device=device, limits=limits, printed=left.tail)
    metrics, complaint = read_metrics(left.metrics)
    if ended.left:
        complaint += f"; {ended.left} of its processes could not be killed"
    killed = ended.reason is not EndReason.ENDED
    return Ran(
        outcome=outcome,
        detail=detail + complaint,
        exit_code=None if killed or ended.signal else ended.returncode,
        duration_s=ended.seconds,
        peak_memory=ended.peak_memory or None,
        exception=exception,
        metrics=metrics,
        loaded={name: tuple(files) for name, files in told.get("loaded", {}).items()},
        installed=tuple((name, version) for name, version in told.get("installed", ())),
        machine=told.get("machine", {}) | ({"problems": told["problems"]} if "problems" in told else {}),
        python=told.get("python", ""),
        tail=left.tail,
        trace=_trace(told.get("trace")),
    )


def read_metrics(path: Path) -> tuple[dict[str, float], str]:
    """The numbers that a repro wrote, and a complaint about what could not be read ("" if nothing).

    NaN and infinities count as numbers, true and false as 1 and 0.
    """
    try:
        if path.stat().st_size > METRICS_LIMIT:
            return {}, "; its metrics file is too large to read"
        written = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"; its metrics file can't be read ({type(error).__name__})"
    if not isinstance(written, dict):
        return {}, "; its metrics file is not a JSON object"
    metrics = {str(name): _number(value) for name, value in written.items()}
    odd = [name for name, value in metrics.items() if value is None]
    complaint = f"; metrics that are no numbers: {', '.join(odd)}" if odd else ""
    return {name: value for name, value in metrics.items() if value is not None}, complaint


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read_report(path: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise HarnessFault(f"the child driver wrote a report that can't be read: {error}") from error
    return report


def _trace(told: Mapping[str, Any] | None) -> Trace | None:
    if told is None:
        return None
    return Trace(
        called=told["called"],
        lines={file: tuple(lines) for file, lines in told["lines"].items()},
        returned=tuple(Returned(*row) for row in told["returned"]),
    )


def _exception(told: Mapping[str, Any] | None) -> RaisedException | None:
    if told is None:
        return None
    return RaisedException(
        type=told["type"],
        message=told["message"],
        bases=tuple(told["bases"]),
        frames=tuple(_frames(told["frames"])),
        cause=_exception(told["cause"]),
    )


def _frames(told: list[dict[str, Any]]) -> Iterator[StackFrame]:
    for frame in told:
        yield StackFrame(frame["file"], frame["line"], frame["function"], frame["package"], frame["text"])
