"""The end of a log as plain text: what a terminal would show, without colours and redrawn progress bars."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_LINES = 200
_WIDTH = 2000


def plain(text: str) -> str:
    """Text without escape sequences and control characters; of a line redrawn in place only its last state."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return "\n".join(_CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n"))


def tail(log: str) -> str:
    """The last 200 lines, long ones cut."""
    lines = plain(log).rstrip().split("\n")
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in lines[-_LINES:]]
    left = len(lines) - len(shown)
    return "\n".join([f"... {left} lines before these", *shown] if left else shown)
