"""Logs and tracebacks are shortened for a page."""

from __future__ import annotations

from answers import frames_of
from attrs import evolve

from harness.model import RaisedException, StackFrame
from harness.model.text import plain
from harness.report.excerpts import tail, trimmed_traceback


def test_colours_and_redrawn_lines_are_removed():
    text = "\x1b[31mred\x1b[0m\r\n10%\r55%\r100%\r\n\x1b]0;title\x07\x00end"
    assert plain(text) == "red\n100%\nend"


def test_long_lines_are_cut():
    assert tail("x" * 5000) == "x" * 2000 + "…"


def test_a_short_log_is_complete():
    assert tail("a\n\nb\n\n") == "a\n\nb"


RAISED = RaisedException("builtins.ValueError", "no price", frames=frames_of(3))


def test_foreign_frames_are_counted():
    assert trimmed_traceback(RAISED, {"shop"}, "sale.py").splitlines() == [
        "Traceback (most recent call last):",
        '  File "sale.py", line 6, in <module>',
        "    shop.sell()",
        "  ... 3 frames of tail",
        '  File "shop/money.py", line 11, in sell',
        "    return price()",
        '  File "tail/end.py", line 9, in stop',
        "    raise ValueError",
        "ValueError: no price",
    ]


def test_frames_of_several_owners_are_counted_each():
    frames = (*frames_of(2)[:3], StackFrame("<frozen importlib>", 1, "f"), *frames_of(0)[1:])
    text = trimmed_traceback(evolve(RAISED, frames=frames), {"shop"}, "sale.py")
    assert "  ... 3 frames of tail 2, Python itself 1" in text


def test_an_endless_recursion_is_shortened():
    deep = tuple(StackFrame("shop/money.py", n, "sell", "shop") for n in range(100))
    lines = trimmed_traceback(evolve(RAISED, frames=deep), {"shop"}, "sale.py").splitlines()
    assert "  ... 88 frames of shop" in lines
    assert len(lines) == 15


def test_a_cause_comes_before_its_effect():
    text = trimmed_traceback(evolve(RAISED, cause=evolve(RAISED, message="the cause")), {"shop"}, "sale.py")
    assert text.index("ValueError: the cause") < text.index("direct cause") < text.index("ValueError: no price")


def test_long_messages_are_cut_and_counted():
    message = "\n".join(["x" * 1000, *map(str, range(30))])
    lines = trimmed_traceback(evolve(RAISED, message=message, frames=()), set(), "").splitlines()
    assert lines[1] == f"ValueError: {'x' * 400}…"
    assert lines[-1] == "... 19 more lines"
