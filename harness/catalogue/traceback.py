"""Reads the exceptions and the versions of packages in a log: of Python, pytest, IPython, CI or several processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.model import RaisedException, StackFrame
from harness.model.text import plain, without_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = re.compile(
    r"^(?:\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\s(?:\[?[A-Z]{4,8}\]?:?\s)?"  # a CI or a logger
    r"|\[(?:rank|default)?\d+\]:\s?"  # torchrun
    r"|\([\w ]*(?:pid|rank)[ =]\d+[^)]*\)\s"  # Ray
    r"|>\s)"  # a quotation
)
_START = "Traceback (most recent call last)"
_FRAMES = (
    re.compile(r'^[\s|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S.*?))?\s*$'),
    re.compile(r"^\s*File (?P<file>[^\s\"][^\n]*?\.py):(?P<line>\d+), in (?P<function>[\w.<>]+)"),  # IPython 8
    re.compile(r"^(?P<file>[~/\w][^\s()]*\.py) in (?P<function>[\w.<>]+)\("),  # IPython 7
    re.compile(r"^[│\s]*(?P<file>[~/\w.][^\s:]*\.py):(?P<line>\d+) in (?P<function>[\w.<>]+)"),  # rich
    re.compile(r"^(?P<file>[\w./~+@-]+\.py):(?P<line>\d+): in (?P<function>[\w.<>]+)\s*$"),  # pytest --tb=short
    re.compile(r"^(?P<file>[\w./~+@-]+\.py):(?P<line>\d+): (?:[A-Z]\w+)?\s*$"),  # pytest
)
_NAMED = r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)"
_RAISED = re.compile(rf"^(?:\|\s*)?{_NAMED}(?::\s(?P<message>.*)|:)?$")
_EXCEPTION = re.compile(
    r"^(?:E\s+)?(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Expired|NotFound|Invalid\w+)"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w+|Exception|InvalidVersion)(?:: (?P<message>.*)|:)?$"
)
_END = re.compile(
    r"^\s*$|^During handling of|^The above exception|Traceback \(most recent call last\)|^=+ |^_+ |^-{5,}"
)
_LONGEST = 12  # lines of a message
_VERSION = r"v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*)"


def exceptions_in(text: str) -> list[RaisedException]:
    """Return the exceptions in a log, in its order, with the frames that stand above each."""
    lines = [_PREFIX.sub("", line) for line in plain(text).splitlines()]
    return list(_exceptions(lines))


def version_in(text: str, project: str) -> str | None:
    """Return the version of a project that a log names: in a list of packages, a sentence or a path; None if none."""
    name = re.sub(r"[-_.]+", "[-_.]", re.escape(project).replace(r"\-", "-"))
    told = re.search(
        rf"(?<![\w/.-]){name}[`*\"']*(?:[ \t]+version)?[`*]*[ \t]*(?:==|[:=|@(-])?[ \t]*[\"'`]*{_VERSION}(?![\w.]*\w)",
        text,
        re.IGNORECASE,
    ) or re.search(rf"/{name}-{_VERSION}\.dist-info", text, re.IGNORECASE)
    return told["version"] if told is not None else None


def _exceptions(lines: list[str]) -> Iterator[RaisedException]:
    frames: list[StackFrame] = []
    is_open, number = False, 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if _START in line:
            frames, is_open = [], True
            continue
        if (frame := _frame(line)) is not None:
            frames.append(frame)
            continue
        bare = line.strip("| ") if line.startswith(("  |", "    |")) else line
        raised = _EXCEPTION.match(bare.strip("`* "))
        if raised is None and is_open and bare[:1].strip() and frames:
            raised = _RAISED.match(bare)  # any class, as the first line after the frames
        if raised is None:
            continue
        message = [raised["message"] or ""]
        is_pytest = bare.startswith("E ")
        while number < len(lines) and len(message) < _LONGEST and not _END.search(lines[number]):
            if _frame(lines[number]) is not None or is_pytest != lines[number].startswith("E "):
                break
            message.append(lines[number].removeprefix("E").strip() if is_pytest else lines[number])
            number += 1
        after = [frame for one in lines[number : number + 2] if is_pytest and (frame := _frame(one)) is not None]
        text = without_folders("\n".join(message).strip())
        yield RaisedException(raised["type"], text, frames=(*frames, *after))
        frames, is_open = ([] if not is_pytest else frames), False


def _frame(line: str) -> StackFrame | None:
    for pattern in _FRAMES:
        if match := pattern.match(line):
            told = match.groupdict()
            file = told["file"].replace("\\", "/")
            function = (told.get("function") or "<module>").partition("(")[0]
            return StackFrame(_inside(file), int(told.get("line") or 0), function)
    return None


def _inside(file: str) -> str:
    """The path below site-packages, with a "/" before it if it is not installed."""
    _, found, inside = file.rpartition("-packages/")
    return inside if found else f"/{file.lstrip('/')}"
