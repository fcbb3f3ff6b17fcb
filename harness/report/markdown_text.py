"""Makes plain text safe in GitHub's Markdown: paragraphs, table cells, code spans and fences."""

from __future__ import annotations

import html
import re

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
_MENTION = re.compile(r"([@#])(?=\w)")


def paragraph(text: str) -> str:
    """One line of text without markup or mentions."""
    line = " ".join(text.split())
    line = html.escape(line, quote=False)
    line = _SPECIAL.sub(r"\\\1", line)
    # A mention would notify a stranger, a number would link an unrelated issue.
    return _MENTION.sub(r"\1<!-- -->", line)


def span(text: str) -> str:
    """A code span on one line, delimited by more backticks than the text has; safe in a table cell."""
    line = " ".join(text.split())
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    # In a table a bar ends the cell even inside code.
    escaped = line.replace("|", "\\|")
    return f"{ticks}{pad}{escaped}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """A fenced block, with a longer fence than any in the text."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
