"""Describes an exception as plain data: type, message, bases, frames (outermost first), and its chain."""

# Importing pathlib would take as long as all the rest of this module.
# ruff: noqa: PTH100, PTH109, PTH119, PTH120

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_INSIDE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MESSAGE_LIMIT = 20_000
_OUTERMOST, _INNERMOST = 50, 150  # frames to keep of an endless recursion
_CHAIN_LIMIT = 50


class Places:
    """Names files by the known folders that they are in, so that the names are the same on every machine."""

    def __init__(self, roots: list[str], script: str, emulation: str | None) -> None:
        self._roots = [root + os.sep for root in {*roots, *map(os.path.realpath, roots)}]
        self._script = script
        self._emulation = emulation + os.sep if emulation else ""

    def name(self, path: str) -> tuple[str, bool]:
        """Return the path to show, and whether it is relative to site-packages."""
        for root in self._roots:
            if path.startswith(root):
                return path[len(root) :], True
        if path == self._script:
            return os.path.basename(path), False
        if self._emulation and path.startswith(self._emulation):
            return "<emulation>/" + path[len(self._emulation) :], False
        try:
            work = os.getcwd() + os.sep
        except OSError:  # the script removed it
            work = ""
        return (path[len(work) :] if work and path.startswith(work) else path), False


def described(error: BaseException, places: Places, depth: int = 0) -> dict[str, Any]:
    """Return the exception with, nested, the exceptions in its `raise ... from` chain."""
    kind = type(error)
    cause = error.__cause__
    return {
        "type": _qualified(kind),
        "message": _message(error),
        "bases": [_qualified(base) for base in kind.__mro__[1:] if base is not object],
        "frames": list(_frames(error.__traceback__, places)),
        "cause": described(cause, places, depth + 1) if cause is not None and depth < _CHAIN_LIMIT else None,
    }


def chain(error: BaseException) -> list[list[str]]:
    """Return the type and message of every exception in the chain, even of those that a traceback does not show."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(found) < _CHAIN_LIMIT:
        one = waiting.pop()
        if one is not None and not any(one is other for other in found):
            found.append(one)
            waiting += [one.__context__, one.__cause__]
    return [[_qualified(type(one)), _message(one)] for one in found]


def installed_files(exception: dict[str, Any] | None) -> set[str]:
    """Return the files below site-packages in the frames."""
    return {frame["file"] for one in _nested(exception) for frame in one["frames"] if frame["installed"]}


def name_packages(exception: dict[str, Any] | None, owners: dict[str, str]) -> None:
    """Add the distribution to each frame, or the top-level name if no distribution owns the file."""
    for one in _nested(exception):
        for frame in one["frames"]:
            if frame.pop("installed"):
                frame["package"] = owners.get(frame["file"]) or frame["file"].split("/")[0]


def _nested(exception: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    while exception is not None:
        yield exception
        exception = exception["cause"]


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_MESSAGE_LIMIT]
    except BaseException as problem:  # noqa: BLE001 - Python prints similar text in a traceback
        return f"<exception str() failed: {type(problem).__name__}>"


def _frames(trace: TracebackType | None, places: Places) -> Iterator[dict[str, Any]]:
    steps = []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not (path.startswith(_INSIDE) and os.sep not in path[len(_INSIDE) :]):
            steps.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    if len(steps) > _OUTERMOST + _INNERMOST:
        steps = steps[:_OUTERMOST] + steps[-_INNERMOST:]
    for frame, line in steps:
        code = frame.f_code
        file, installed = places.name(code.co_filename)
        yield {
            "file": file,
            "line": line or 0,
            "function": code.co_name,
            "package": "",
            "text": _text(code.co_filename, line or 0, frame.f_globals),
            "installed": installed,
        }


def _text(path: str, line: int, names: dict[str, Any]) -> str:
    try:
        return linecache.getline(path, line, names).strip()
    except Exception:  # noqa: BLE001 - keep the frames even if the script replaced `open`
        return ""
