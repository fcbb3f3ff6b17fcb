"""Shortens a log to its end, as plain text without colours and redrawn progress bars."""

from __future__ import annotations

from harness.model.text import plain

_LINES = 200
_WIDTH = 2000


def tail(log: str) -> str:
    """Return the last 200 lines; long lines are cut."""
    lines = plain(log).rstrip().split("\n")
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in lines[-_LINES:]]
    left = len(lines) - len(shown)
    return "\n".join([f"... {left} lines before these", *shown] if left else shown)
