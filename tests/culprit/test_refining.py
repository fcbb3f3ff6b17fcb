"""Older lines get the names of today, also those of a generated file with a line of many thousand statements."""

from __future__ import annotations

from harness.culprit.refining import _as_today

FILLER = ";".join(f"a{number}={number}" for number in range(20_000))


def test_a_long_line_is_compared_where_it_differs():
    old, new = f"{FILLER};f=lambda was: was+0\n", f"{FILLER};f=lambda now: now+1\n"
    assert _as_today([old], [new]) == [f"{FILLER};f=lambda now: now+0\n"]


def test_long_lines_that_differ_everywhere_stay():
    old, new = FILLER.replace("a", "b"), FILLER
    assert _as_today([old], [new]) == [old]
