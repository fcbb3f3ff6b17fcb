"""What a run wrote for us, read with suspicion: the child driver's report and the repro's metrics.

Both lie where the repro can write. Only a regular file of bounded size is read, a link is not followed, nothing in it
is taken for granted, and text is made safe to show.
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
from harness.model.text import plain
from harness.model.words import listed
from harness.run.launch import METRICS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPORT_LIMIT = 64 * 1024 * 1024  # a trace of every function that was called takes megabytes
METRICS_COUNT = 1000
_NAME = 200
_MESSAGE = 20_000
_CAUSES = 50
_FRAMES = 400


class Unreadable(Exception):
    """Why a file that a run wrote is not read: a few words."""


@frozen
class ChildReport:
    """What the child driver told, each part as far as it makes sense, else empty.

    `end` is "completed", "exit", "raised" or "forked"; `stage` is "emulation" or "script"; `chain` has type and message
    of each exception that this one came out of.
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
    """The child driver's report; None if it wrote none. Raises `Unreadable` where it is no report."""
    data = content_of(path, REPORT_LIMIT)
    if data is None:
        return None
    told = _parsed(data)
    if not isinstance(told, dict) or not isinstance(told.get("end"), str) or told["end"] not in _ENDS:
        raise Unreadable("is not a report")
    machine: dict[str, Any] = {name: _simple(value) for name, value in _items(told.get("machine"))}
    if problems := list(_texts(told.get("problems"))):
        machine["problems"] = problems
    exception = exception_of(told.get("exception"), 0)
    if told["end"] == "raised" and exception is None:
        raise Unreadable("tells of an exception that it does not describe")
    return ChildReport(
        end=told["end"],
        stage="emulation" if told.get("stage") == "emulation" else "script",
        message=_text(told.get("message")),
        exception=exception,
        chain=tuple(_pairs(told.get("chain"))),
        loaded={name: tuple(_texts(files)) for name, files in _items(told.get("loaded"))},
        installed=tuple(_pairs(told.get("installed"))),
        machine=machine,
        python=_text(told.get("python")),
        trace=_trace(told["trace"]) if isinstance(told.get("trace"), dict) else None,
    )


def read_imports(path: Path) -> tuple[dict[str, str], dict[str, list[str]]] | None:
    """The modules of a traced run with their files, in the order of loading, and which of them each imported."""
    try:
        data = content_of(path, REPORT_LIMIT)
        told = _parsed(data) if data is not None else None
    except Unreadable:
        return None
    if not isinstance(told, dict):
        return None
    modules = {name: file for name, file in _items(told.get("modules")) if isinstance(file, str)}
    imports = {name: list(_texts(found)) for name, found in _items(told.get("imports"))}
    return modules, imports


def read_metrics(path: Path) -> tuple[dict[str, float], str]:
    """The numbers that a repro wrote, and a complaint about what could not be read ("" if nothing).

    NaN and infinities count as numbers, true and false as 1 and 0. The first thousand are kept.
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
        complaint += f"; of its metrics the first {len(metrics)} are kept, {dropped} were dropped"
    return metrics, complaint


def content_of(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file, None if there is none. Raises `Unreadable`; never waits and never follows a link."""
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
        # A sparse file costs nothing to make and all of the memory to read.
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


def _trace(told: dict[str, Any]) -> Trace:
    returned = told.get("returned")
    return Trace(
        called={
            file: {name: rank for name, rank in _items(functions) if type(rank) is int}
            for file, functions in _items(told.get("called"))
        },
        lines={
            file: tuple(line for line in lines if type(line) is int)
            for file, lines in _items(told.get("lines"))
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


def exception_of(told: Any, depth: int = 0) -> RaisedException | None:
    """An exception as a child described it, None where it described none."""
    match told:
        case {"type": str(kind), "message": str(message)} if depth <= _CAUSES:
            return RaisedException(
                type=_text(kind, _NAME),
                message=_text(message),
                bases=tuple(_texts(told.get("bases"))),
                frames=tuple(_frames(told.get("frames"))),
                cause=exception_of(told.get("cause"), depth + 1),
            )
    return None


def _frames(told: Any) -> Iterator[StackFrame]:
    for frame in told[:_FRAMES] if isinstance(told, list) else ():
        match frame:
            case {"file": str(file), "line": int(line), "function": str(function)}:
                yield StackFrame(
                    _text(file), line, _text(function, _NAME), _text(frame.get("package")), _text(frame.get("text"))
                )
