"""Escapes plain text for GitHub's Markdown: paragraphs, table cells, code spans and fenced blocks."""

from __future__ import annotations

import html
import re

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
_MENTION = re.compile(r"([@#])(?=\w)")


def paragraph(text: str) -> str:
    """Return text on one line, without markup or mentions."""
    line = " ".join(text.split())
    line = html.escape(line, quote=False)
    line = _SPECIAL.sub(r"\\\1", line)
    # "@name" would notify a stranger, and "#12" would link an unrelated issue.
    return _MENTION.sub(r"\1<!-- -->", line)


def span(text: str) -> str:
    """Return a code span on one line, delimited by more backticks than the text has; safe in a table cell."""
    line = " ".join(text.split())
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    # In a table, "|" ends the cell even inside a code span.
    escaped = line.replace("|", "\\|")
    return f"{ticks}{pad}{escaped}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """Return a fenced block, with a longer fence than any in the text."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
