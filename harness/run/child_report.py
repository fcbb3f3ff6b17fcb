"""Reads the child driver's report and the repro's metrics as untrusted input.

The repro can write to both files. Only regular files of bounded size are read, links are not followed, every value is
checked, and text is made safe to print.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from typing import TYPE_CHECKING, Any

from attrs import fields, frozen

from harness.model import RaisedException, Returned, StackFrame, Trace
from harness.model.text import listed, plain
from harness.run.launch import METRICS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPORT_LIMIT = 64 * 1024 * 1024  # a trace of all called functions takes megabytes
METRICS_COUNT = 1000
_NAME = 200
_MESSAGE = 20_000
_CAUSES = 50
_FRAMES = 400


class Unreadable(Exception):
    """A file from a run can't be read; the message says why in a few words."""


@frozen
class ChildReport:
    """The child driver's report; invalid parts are empty.

    `end` is "completed", "exit", "raised" or "forked"; `stage` is "emulation" or "script"; `chain` has the type and
    message of each exception in the chain.
    """

    end: str
    stage: str = "script"
    message: str = ""
    exception: RaisedException | None = None
    chain: tuple[tuple[str, str], ...] = ()
    loaded: dict[str, tuple[str, ...]] | None = None
    installed: tuple[tuple[str, str], ...] = ()
    machine: dict[str, Any] | None = None
    python: str = ""
    trace: Trace | None = None


_ENDS = frozenset({"completed", "exit", "raised", "forked"})


def read_report(path: Path) -> ChildReport | None:
    """Read the child driver's report; None if there is none. Raises `Unreadable` if the file is not a report."""
    data = content_of(path, REPORT_LIMIT)
    if data is None:
        return None
    report = _parsed(data)
    if not isinstance(report, dict) or not isinstance(report.get("end"), str) or report["end"] not in _ENDS:
        raise Unreadable("is not a report")
    machine: dict[str, Any] = {name: _simple(value) for name, value in _items(report.get("machine"))}
    if problems := list(_texts(report.get("problems"))):
        machine["problems"] = problems
    exception = exception_of(report.get("exception"), 0)
    if report["end"] == "raised" and exception is None:
        raise Unreadable("does not describe its exception")
    return ChildReport(
        end=report["end"],
        stage="emulation" if report.get("stage") == "emulation" else "script",
        message=_text(report.get("message")),
        exception=exception,
        chain=tuple(_pairs(report.get("chain"))),
        loaded=files_of(report.get("loaded")),
        installed=tuple(_pairs(report.get("installed"))),
        machine=machine,
        python=_text(report.get("python")),
        trace=_trace(report["trace"]) if isinstance(report.get("trace"), dict) else None,
    )


def read_imports(path: Path) -> tuple[dict[str, str], dict[str, list[str]]] | None:
    """Read the modules of a traced run with their files, in loading order, and the imports of each module.

    Returns None if there is no readable record.
    """
    try:
        data = content_of(path, REPORT_LIMIT)
        report = _parsed(data) if data is not None else None
    except Unreadable:
        return None
    if not isinstance(report, dict):
        return None
    modules = {name: file for name, file in _items(report.get("modules")) if isinstance(file, str)}
    imports = {name: list(_texts(found)) for name, found in _items(report.get("imports"))}
    return modules, imports


def read_metrics(path: Path) -> tuple[dict[str, float], str]:
    """Read the numbers that a repro wrote, and a complaint about anything unreadable ("" if none).

    NaN and infinities are numbers, true and false count as 1 and 0. Only the first thousand are kept.
    """
    try:
        data = content_of(path, METRICS_LIMIT)
        if data is None:
            return {}, ""
        written = _parsed(data)
    except Unreadable as why:
        return {}, f"; its metrics file {why}"
    if not isinstance(written, dict):
        return {}, "; its metrics file is not a JSON object"
    metrics: dict[str, float] = {}
    odd: list[str] = []
    for name, value in written.items():
        number = _number(value)
        shown = _text(name, _NAME)
        if number is None:
            odd.append(shown)
        elif len(metrics) < METRICS_COUNT:
            metrics[shown] = number
    dropped = len(written) - len(odd) - len(metrics)
    complaint = f"; metrics that are not numbers: {listed(odd, 6)}" if odd else ""
    if dropped > 0:
        complaint += f"; the first {len(metrics)} metrics are kept, {dropped} are dropped"
    return metrics, complaint


def content_of(path: Path, limit: int) -> bytes | None:
    """Read a regular file of at most `limit` bytes; None if there is none. Never blocks and never follows a link.

    Raises `Unreadable` if the file is larger, not a regular file, or can't be read.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise Unreadable("is not a regular file") from None
        raise Unreadable(f"can't be read ({os.strerror(error.errno or 0)})") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("is not a regular file")
        # A sparse file is cheap to create, and reading it would fill the memory.
        if status.st_size > limit:
            raise Unreadable(f"is larger than {limit >> 20} MiB")
        with os.fdopen(os.dup(file), "rb") as raw:
            return raw.read(limit)
    except OSError as error:
        raise Unreadable(f"can't be read ({os.strerror(error.errno or 0)})") from None
    finally:
        os.close(file)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"can't be read ({type(error).__name__})") from None


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: Any, limit: int = _MESSAGE) -> str:
    return plain(value[:limit]) if isinstance(value, str) else ""


def _texts(value: Any) -> Iterator[str]:
    yield from (_text(one) for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from ((_text(name), one) for name, one in value.items()) if isinstance(value, dict) else ()


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    for pair in value if isinstance(value, list) else ():
        match pair:
            case [str(first), str(second)]:
                yield _text(first), _text(second)


def _trace(trace: dict[str, Any]) -> Trace:
    returned = trace.get("returned")
    return Trace(
        called={
            file: {name: rank for name, rank in _items(functions) if type(rank) is int}
            for file, functions in _items(trace.get("called"))
        },
        lines={
            file: tuple(line for line in lines if type(line) is int)
            for file, lines in _items(trace.get("lines"))
            if isinstance(lines, list)
        },
        returned=tuple(
            Returned(*map(_text, row))
            for row in (returned if isinstance(returned, list) else ())
            if isinstance(row, list) and len(row) == len(fields(Returned)) and all(isinstance(one, str) for one in row)
        ),
    )


def _simple(value: Any) -> str | int | float | bool | None:
    return _text(value) if isinstance(value, str) else value if isinstance(value, int | float) else None


def files_of(value: Any) -> dict[str, tuple[str, ...]]:
    """Parse the files of each distribution that a child described."""
    return {name: tuple(_texts(files)) for name, files in _items(value)}


def exception_of(value: Any, depth: int = 0) -> RaisedException | None:
    """Parse an exception that a child described; None if it described none."""
    match value:
        case {"type": str(kind), "message": str(message)} if depth <= _CAUSES:
            return RaisedException(
                type=_text(kind, _NAME),
                message=_text(message),
                bases=tuple(_texts(value.get("bases"))),
                frames=tuple(_frames(value.get("frames"))),
                cause=exception_of(value.get("cause"), depth + 1),
            )
    return None


def _frames(value: Any) -> Iterator[StackFrame]:
    for frame in value[:_FRAMES] if isinstance(value, list) else ():
        match frame:
            case {"file": str(file), "line": int(line), "function": str(function)}:
                yield StackFrame(
                    _text(file), line, _text(function, _NAME), _text(frame.get("package")), _text(frame.get("text"))
                )
