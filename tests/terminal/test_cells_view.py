"""What a person sees while cells of a matrix run, on a terminal and in a log."""

from __future__ import annotations

import io

from rich.console import Console

from harness.matrix import Cell
from harness.model import Device, Judgement, Observation, Outcome, Verdict
from harness.search import Grid
from harness.terminal import LiveCells, PlainCells, QuietCells

CELLS = tuple(Cell(name, "step") for name in ("first", "second", "third", "fourth", "fifth"))


def seen(key: str, outcome: Outcome = Outcome.COMPLETED) -> Observation:
    return Observation(key, outcome, "step", "d", Device.CPU, duration_s=1.0)


def play(view) -> None:
    """One cell is run, its twin, the store and the resolver answer three, and the last is running."""
    search = Grid(len(CELLS))
    view.begin(CELLS, search)
    answers = [
        (Verdict.GOOD, seen("a"), False),
        (Verdict.GOOD, seen("a"), True),
        (Verdict.BAD, seen("b"), True),
        (Verdict.SKIP, seen("c", Outcome.UNRESOLVABLE), False),
    ]
    for position, (verdict, observation, cached) in enumerate(answers):
        view.preparing(position)
        if not position:
            view.running(position)
        search.tell(position, verdict)
        view.told(position, Judgement(verdict, "a [reason] in brackets"), observation, cached=cached)
    view.preparing(4)
    view.running(4)


def test_a_log_has_a_line_for_each_thing_that_happens():
    out = io.StringIO()
    play(PlainCells(Console(file=out, width=40)))
    lines = out.getvalue().splitlines()
    assert lines[:3] == ["5 cells to judge", "first: resolving and installing", "first: running"]
    assert "first: good (a [reason] in brackets) [1.0 s]" in lines
    assert lines[4].startswith("  4 cells left, about ")
    assert lines[-1] == "fifth: running"


def test_who_answered_without_a_run_is_told():
    """A twin with the same lock, the store, or the resolver."""
    out = io.StringIO()
    play(PlainCells(Console(file=out)))
    lines = out.getvalue().splitlines()
    assert "second: good (a [reason] in brackets) [same lock as first]" in lines
    assert "third: bad (a [reason] in brackets) [known already]" in lines
    assert "fourth: skip (a [reason] in brackets) [not started]" in lines
    assert any(line.startswith("  1 cell left, ") for line in lines)


def test_a_terminal_shows_what_runs_and_what_is_left():
    console = Console(file=io.StringIO(), force_terminal=True, width=100, record=True)
    with LiveCells(console) as view:
        play(view)
        console.print(view._render())
    text = console.export_text()
    assert "[GGBS?]" in text
    assert "fifth running 0 s" in text
    assert "1 cell left" in text
    assert " bad third known already  a [reason] in brackets" in text
    assert "same lock as first" in text


def test_a_quiet_view_shows_nothing():
    play(QuietCells())
