"""Reads the exceptions and the versions of packages in a log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.drafting.tracebacks import tracebacks_of
from harness.model import RaisedException, StackFrame
from harness.model.text import without_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.drafting.tracebacks import Raised

_VERSION = r"v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*)"


def exceptions_in(text: str) -> list[RaisedException]:
    """Return the exceptions in a log, causes before what they caused, with the frames that stand above each."""
    return [one for raised in tracebacks_of(text) for one in _with_causes(raised)]


def version_in(text: str, project: str) -> str | None:
    """Return the version of a project that a log names: in a list of packages, a sentence or a path; None if none."""
    name = re.sub(r"[-_.]+", "[-_.]", re.escape(project).replace(r"\-", "-"))
    told = re.search(
        rf"(?<![\w/.-]){name}[`*\"']*(?:[ \t]+version)?[`*]*[ \t]*(?:==|[:=|@(-])?[ \t]*[\"'`]*{_VERSION}(?![\w.]*\w)",
        text,
        re.IGNORECASE,
    ) or re.search(rf"/{name}-{_VERSION}\.dist-info", text, re.IGNORECASE)
    return told["version"] if told is not None else None


def _with_causes(raised: Raised) -> Iterator[RaisedException]:
    for cause in reversed(raised.causes):
        yield from _with_causes(cause)
    frames = (
        StackFrame(_inside(one.file.replace("\\", "/")), one.line, one.function.partition("(")[0])
        for one in raised.frames
    )
    yield RaisedException(raised.type, without_folders(raised.message), frames=tuple(frames))


def _inside(file: str) -> str:
    """The path below site-packages, with a "/" before it if it is not installed."""
    _, found, inside = file.rpartition("-packages/")
    return inside if found else f"/{file.lstrip('/')}"
