"""A log as a terminal would show it."""

from __future__ import annotations

from harness.model.text import plain
from harness.report.logs import tail


def test_colours_and_redrawn_lines_are_removed():
    text = "\x1b[31mred\x1b[0m\r\n10%\r55%\r100%\r\n\x1b]0;title\x07\x00end"
    assert plain(text) == "red\n100%\nend"


def test_long_lines_are_cut():
    assert tail("x" * 5000) == "x" * 2000 + "…"


def test_a_short_log_is_complete():
    assert tail("a\n\nb\n\n") == "a\n\nb"
