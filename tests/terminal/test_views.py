"""What a person sees while something is searched, on a terminal, in a log, in a night, and with `--json`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.events import (
    SILENT,
    Asked,
    Judged,
    LevelBegan,
    LookedUp,
    Note,
    Progress,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
)
from harness.model import Device, Judgement, Observation, Outcome, Signature, Verdict
from harness.model.culprit import Level
from harness.search import Bisection, Grid, PositionState, Trial
from harness.terminal import LiveView, PlainView
from harness.terminal.clock import duration
from harness.terminal.nights import NightView
from harness.terminal.picture import picture, print_skipped
from harness.terminal.plain import WarningsOnly

CELLS = ("first", "second", "third", "fourth", "fifth")
REASON = "a [reason] in brackets"


def seen(key: str, outcome: Outcome = Outcome.COMPLETED) -> Observation:
    return Observation(key, outcome, "step", "d", Device.CPU, duration_s=1.0)


def play(view) -> None:
    """Both ends of ten releases are judged, and the middle is running."""
    search = Bisection(10, good=0, bad=9)
    view.report(SearchBegan("looking for it", ("by its name",), Progress(search.states, search.remaining())))
    view.report(SignatureCaptured(Signature(exception="RuntimeError"), "the bad end"))
    for position, verdict in ((9, Verdict.BAD), (0, Verdict.GOOD)):
        view.report(Asked(f"1.{position}"))
        view.report(Started(f"1.{position}"))
        search.tell(Trial(position), verdict)
        progress = Progress(search.states, search.remaining())
        cached = position == 0
        view.report(Judged(f"1.{position}", Judgement(verdict, REASON), seen(str(position)), cached, progress))
    view.report(Asked("1.4"))
    view.report(Started("1.4"))


def play_cells(view) -> None:
    """One cell is run, its twin, the store and the resolver answer three, and the last is running."""
    search = Grid(len(CELLS))
    view.report(SearchBegan("5 cells to judge", progress=Progress(search.states, 5, "cell")))
    answers = [
        (Verdict.GOOD, seen("a"), False),
        (Verdict.GOOD, seen("a"), True),
        (Verdict.BAD, seen("b"), True),
        (Verdict.SKIP, seen("c", Outcome.UNRESOLVABLE), False),
    ]
    for position, (verdict, observation, cached) in enumerate(answers):
        view.report(Asked(CELLS[position]))
        if not position:
            view.report(Started(CELLS[position]))
        search.tell(position, verdict)
        progress = Progress(search.states, search.remaining(), "cell")
        view.report(Judged(CELLS[position], Judgement(verdict, REASON), observation, cached, progress))
    view.report(Asked(CELLS[4]))
    view.report(Started(CELLS[4]))


def play_level(view) -> None:
    """A level with one candidate that was judged, and a proof."""
    view.report(LevelBegan(Level.FILE, "3 files differ"))
    for is_proof in (False, True):
        view.report(Started("a.py put back"))
        progress = Progress(candidates=3, tried=1)
        judged = Judged("a.py put back", Judgement(Verdict.GOOD, REASON), seen("m"), cached=False, progress=progress)
        view.report(Judged("a.py put back", judged.judgement, judged.observation, False, progress, is_proof))


def logged(play, view=PlainView) -> list[str]:
    out = io.StringIO()
    play(view(Console(file=out, width=40)))
    return out.getvalue().splitlines()


def drawn(play) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, record=True)
    with LiveView(console) as view:
        play(view)
        console.print(view._render())
    return console.export_text()


def test_a_log_has_a_line_for_each_thing_that_happens():
    lines = logged(play)
    assert lines[:2] == ["looking for it", "  by its name"]
    assert f"1.9: bad ({REASON}) [1.0 s]" in lines
    assert f"1.0: good ({REASON}) [known already]" in lines
    assert any(line.startswith("  [G????????B]  at most ") for line in lines)
    assert any("the bad end" in line and "RuntimeError" in line for line in lines)
    assert lines[-1] == "1.4: running"


def test_a_terminal_shows_the_picture_and_what_runs():
    text = drawn(play)
    assert "[G????????B]" in text
    assert "1.4 running 0 s" in text
    assert REASON in text


def test_a_log_of_cells_says_how_many_are_left():
    lines = logged(play_cells)
    assert lines[:3] == ["5 cells to judge", "first: resolving and installing", "first: running"]
    assert f"first: good ({REASON}) [1.0 s]" in lines
    assert lines[4].startswith("  4 cells left, about ")
    assert any(line.startswith("  1 cell left, ") for line in lines)
    assert lines[-1] == "fifth: running"


def test_who_answered_without_a_run_is_told():
    """A twin with the same lock, the store, or the resolver."""
    lines = logged(play_cells)
    assert f"second: good ({REASON}) [same lock as first]" in lines
    assert f"third: bad ({REASON}) [known already]" in lines
    assert f"fourth: skip ({REASON}) [not started]" in lines


def test_a_terminal_shows_which_cells_run_and_what_is_left():
    text = drawn(play_cells)
    assert "[GGBS?]" in text
    assert "fifth running 0 s" in text
    assert "1 cell left" in text
    assert "same lock as first" in text


def test_of_a_level_only_verdicts_are_worth_a_line():
    lines = logged(play_level)
    assert len(lines) == 3
    assert "3 candidates, 1 tried" in lines[1]
    assert "proof" in lines[2]


def test_a_night_has_no_line_for_what_is_known():
    lines = logged(play_cells, NightView)
    assert [line.partition(":")[0] for line in lines] == ["first", "first", "fourth", "fifth"]
    assert "4 cells left" in lines[1]


@pytest.mark.parametrize("view", [PlainView, NightView, WarningsOnly])
def test_a_warning_is_shown_by_every_view(view):
    assert "a worker is left out" in logged(lambda view: view.report(Warned("a worker is left out")), view)[0]


@pytest.mark.parametrize("view", [PlainView, NightView])
def test_notes_are_shown_where_people_look(view):
    assert "waiting" in logged(lambda view: view.report(Note("waiting")), view)[0]
    assert logged(lambda view: view.report(Note("waiting")), WarningsOnly) == []


def test_with_json_nothing_else_is_shown():
    assert logged(play, WarningsOnly) == logged(play_cells, WarningsOnly) == logged(play_level, WarningsOnly) == []
    play(SILENT)


def test_the_picture_drops_what_can_not_matter_at_the_far_ends():
    untried, excluded, good = PositionState.UNTRIED, PositionState.EXCLUDED, PositionState.GOOD
    assert picture([untried] * 3).plain == "[???]"
    assert picture([excluded, good, excluded, untried, excluded, excluded]).plain == "[G-?]"
    assert picture([]).plain == "[]"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (7200, "2.0 h")])
def test_durations_are_in_the_unit_that_reads_best(seconds, text):
    assert duration(seconds) == text


def test_a_scan_says_how_far_it_is_with_looking_things_up():
    def play(view):
        for done in range(11):
            view.report(LookedUp(done, 10))

    lines = logged(play)
    assert [line.rpartition(": ")[2].partition(",")[0] for line in lines] == [f"{n} of 10" for n in (0, 2, 4, 6, 8)]
    assert all("left" in line for line in lines[1:])


def test_skips_with_one_reason_are_one_line():
    out = io.StringIO()
    same = [(f"1.{number}", "needs Python 3.99") for number in range(20)]
    print_skipped(Console(file=out, width=100), [*same[:10], ("2.0", "crashed"), *same[10:]])
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "1.0" in lines[0]
    assert "15 more" in lines[0]
    assert lines[1].strip() == "skipped 2.0: crashed"
