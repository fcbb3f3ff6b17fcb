"""The screen during a search: on a terminal, in a log, and with `--json`."""

from __future__ import annotations

import io
import os
import re
import threading
import time

import pytest
from support import bisection

from harness.bisection.sections import skipped_rows
from harness.events import (
    SILENT,
    Dropped,
    Judged,
    LevelBegan,
    Note,
    Preparing,
    Progress,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
    run_label,
)
from harness.model import Device, Judgement, Observation, Outcome, Signature, Verdict
from harness.model.culprit import Level
from harness.model.text import short_reason
from harness.search import Grid, PositionState, Trial
from harness.terminal import LiveView, PlainView
from harness.terminal.console import Console, duration, picture, print_rows
from harness.terminal.live import WarningsOnly, reporting

CELLS = ("first", "second", "third", "fourth", "fifth")
REASON = "a [reason] in brackets"
ENVIRONMENT = "/home/me/.cache/harness/environments/0123456789abcdef0123"


def seen(key: str, outcome: Outcome = Outcome.COMPLETED) -> Observation:
    return Observation(key, outcome, "step", "d", Device.CPU, duration_s=1.0)


def play(view) -> None:
    """Both ends of ten releases are judged, and the middle one is running."""
    search = bisection(10, good=0, bad=9)
    view.report(SearchBegan("looking for it", ("by its name",), Progress(search.states, search.remaining())))
    view.report(SignatureCaptured(Signature(exception="RuntimeError"), "the bad end"))
    for position, verdict in ((9, Verdict.BAD), (0, Verdict.GOOD)):
        view.report(Preparing(f"1.{position}"))
        view.report(Started(f"1.{position}"))
        search.tell(Trial(position), verdict)
        progress = Progress(search.states, search.remaining())
        cached = position == 0
        view.report(Judged(f"1.{position}", Judgement(verdict, REASON), seen(str(position)), cached, progress))
    view.report(Preparing("1.4"))
    view.report(Started("1.4"))


def play_cells(view) -> None:
    """One cell has run; its twin, the store and the resolver answered three; the last is running."""
    search = Grid(len(CELLS))
    view.report(SearchBegan("5 cells to judge", progress=Progress(search.states, 5, "cell")))
    answers = [
        (Verdict.GOOD, seen("a"), False),
        (Verdict.GOOD, seen("a"), True),
        (Verdict.BAD, seen("b"), True),
        (Verdict.SKIP, seen("c", Outcome.UNRESOLVABLE), False),
    ]
    for position, (verdict, observation, cached) in enumerate(answers):
        view.report(Preparing(CELLS[position]))
        if not position:
            view.report(Started(CELLS[position]))
        search.tell(position, verdict)
        progress = Progress(search.states, search.remaining(), "cell")
        view.report(Judged(CELLS[position], Judgement(verdict, REASON), observation, cached, progress))
    view.report(Preparing(CELLS[4]))
    view.report(Started(CELLS[4]))


def logged(play, view=PlainView) -> list[str]:
    out = io.StringIO()
    play(view(Console(file=out, width=40)))
    return out.getvalue().splitlines()


def line_of(name: str, lines: list[str]) -> str:
    [line] = [line for line in lines if name in line.split()[:2]]
    return line


def drawn(play) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, record=True)
    with LiveView(console) as view:
        play(view)
        console.print(view._render())
    return console.export_text()


def played_long(view) -> None:
    """A probe with a long name and a long reason that contains cache folders."""
    reason = f"ImportError: no name ({ENVIRONMENT}/lib/python3.11/site-packages/a.py)"
    judgement = Judgement(Verdict.SKIP, f"{reason} {'and so on ' * 30}")
    view.report(Judged("a name " * 30, judgement, seen("k"), cached=False, progress=Progress(left=3)))


def test_a_long_line_of_a_log_is_cut_but_not_its_seconds():
    [line] = logged(played_long)
    assert len(line) <= 120
    assert "skipped" in line
    assert "1.0 s" in line


def test_a_long_reason_is_cut_but_not_its_seconds():
    def play(view):
        view.report(Judged("1.0", Judgement(Verdict.BAD, "and so on " * 30), seen("k"), False, Progress(left=3)))

    [line] = logged(play)
    assert 100 < len(line) <= 120
    assert "…  [1.0 s" in line


def test_a_long_line_is_cut_to_the_terminal():
    [line] = [line for line in drawn(played_long).splitlines() if "skipped" in line]
    assert len(line) <= 100


def test_cache_folders_are_not_shown():
    assert short_reason(f"no name ({ENVIRONMENT}/lib/python3.11/site-packages/a/b.py)") == "no name (a/b.py)"
    assert short_reason(f"{ENVIRONMENT}/bin/python: No module x") == "python: No module x"
    assert short_reason("can't open /home/me/building/mine.py, lib/python3 and/or more") == (
        "can't open /home/me/building/mine.py, lib/python3 and/or more"
    )


def test_a_terminal_shows_the_picture_and_what_runs():
    text = drawn(play)
    assert "[G????????B]" in text
    assert "1.4 running 0 s" in text
    assert REASON in text


class Screen(io.StringIO):
    """What a terminal shows: it knows line feeds, and going up and erasing lines, as rich does. A slow one."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self.at = 0

    def write(self, text: str) -> int:
        """Write as a terminal does."""
        for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", text):
            time.sleep(0)  # other threads may write now
            if part == "\n":
                self.at += 1
                self.lines += [""] * (self.at + 1 - len(self.lines))
            elif part == "\x1b[1A":
                self.at -= 1
            elif part == "\x1b[2K":
                self.lines[self.at] = ""
            elif part[0] not in "\x1b\r":
                self.lines[self.at] += part
        return len(text)


def test_no_line_is_lost_while_the_picture_changes():
    """Verdicts and notes come from several threads while the picture is redrawn all the time."""
    screen, judgement = Screen(), Judgement(Verdict.GOOD, REASON)
    with LiveView(Console(file=screen, force_terminal=True, width=100)) as view:
        view.report(SearchBegan("looking for it", progress=Progress((PositionState.UNTRIED,) * 9)))

        def notes() -> None:
            for number in range(200):
                view.report(Note(f"note {number}."))

        def redraw() -> None:
            while not done.is_set():
                with view.console.writing:
                    view._live.refresh()

        done = threading.Event()
        others = [threading.Thread(target=target) for target in (notes, notes, redraw)]
        for other in others:
            other.start()
        for number in range(400):
            view.report(Preparing(f"1.{number}"))
            if number % 3:  # so that the height of the picture changes
                view.report(Preparing(f"2.{number}"))
            view.report(Judged(f"1.{number}", judgement, seen(str(number)), False))
            view.report(Dropped(f"2.{number}"))
        for other in others[:2]:
            other.join()
        done.set()
        others[2].join()
    shown = "\n".join(screen.lines)
    assert [n for n in range(400) if f"1.{n} " not in shown] == []
    assert [n for n in range(200) if shown.count(f"note {n}.") != 2] == []


@pytest.mark.parametrize(
    "event",
    [
        Dropped("1.4"),
        Judged("1.4", Judgement(Verdict.GOOD, REASON), seen("4"), cached=True),
        LevelBegan(Level.FILE, "3 files differ"),
    ],
)
def test_a_run_that_ended_or_is_no_longer_needed_disappears(event):
    with LiveView(Console(file=io.StringIO(), force_terminal=True, width=100)) as view:
        play(view)
        view.report(event)
        assert "1.4" not in shown_by(view)


def test_a_download_shows_how_much_has_arrived(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "downloads" / "lock"
    folder.mkdir(parents=True)
    with LiveView(Console(file=io.StringIO(), force_terminal=True, width=100)) as view:
        view.report(Preparing("1.4"))
        (folder / "shop.whl").write_bytes(b"0" * (3 << 20))
        assert "1.4 resolving and installing, 3.0 MiB on disk so far" in shown_by(view)


def test_a_step_that_was_not_asked_for_ends_when_the_search_goes_on():
    with LiveView(Console(file=io.StringIO(), force_terminal=True, width=100)) as view:
        view.report(LevelBegan(Level.REGION, "3 places differ"))
        for following in (Preparing("a"), Judged("b", Judgement(Verdict.GOOD, REASON), seen("b"), False)):
            view.report(Started("preparing a process"))
            assert "preparing" in shown_by(view)
            view.report(following)
            assert "preparing" not in shown_by(view)


def shown_by(view: LiveView) -> str:
    drawn = Console(file=io.StringIO(), width=100, record=True)
    drawn.print(view._render())
    return drawn.export_text()


def test_answers_without_a_run_name_their_source():
    """A twin with the same lock, the store, or the resolver."""
    lines = logged(play_cells)
    assert "same packages as first" in line_of("second", lines)
    assert "known already" in line_of("third", lines)
    assert "not started" in line_of("fourth", lines)
    assert line_of("fourth", lines).startswith("skipped ")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_verdict_that_several_failures_ask_for_is_told_once(is_terminal):
    """Each of thirty groups of tests with one culprit would fill a screen with the same lines."""

    def play(view) -> None:
        for verdict, cached in ((Verdict.BAD, False), (Verdict.BAD, True), (Verdict.GOOD, True), (Verdict.GOOD, True)):
            view.report(SearchBegan("another group of tests"))
            view.report(Judged("1.5", Judgement(verdict, REASON), seen("a"), cached, Progress()))

    lines = drawn(play).splitlines() if is_terminal else logged(play)
    assert [line.split()[0] for line in lines if "1.5" in line.split()] == ["bad", "good"]


def test_a_terminal_shows_running_and_remaining_cells():
    text = drawn(play_cells)
    assert "[GGBS?]" in text
    assert "fifth running 0 s" in text
    assert "1 cell left" in text
    assert "same packages as first" in text


@pytest.mark.parametrize("view", [PlainView, WarningsOnly])
def test_a_warning_is_shown_by_every_view(view):
    assert "a worker is left out" in logged(lambda view: view.report(Warned("a worker is left out")), view)[0]


@pytest.mark.parametrize("view", [PlainView, WarningsOnly])
def test_a_warning_about_the_machine_is_shown_once_a_day(view, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))

    def shown() -> list[str]:
        return logged(lambda view: view.report(Warned("no sandbox", is_daily=True)), view)

    assert [bool(shown()), bool(shown())] == [True, False]
    os.utime(tmp_path / "warned.txt", (0, 0))
    assert shown()


def test_notes_are_shown_to_people():
    assert "waiting" in logged(lambda view: view.report(Note("waiting")))[0]
    assert logged(lambda view: view.report(Note("waiting")), WarningsOnly) == []


def test_with_json_nothing_else_is_shown():
    assert logged(play, WarningsOnly) == logged(play_cells, WarningsOnly) == []
    play(SILENT)


def test_the_picture_drops_irrelevant_far_ends():
    untried, excluded, good = PositionState.UNTRIED, PositionState.EXCLUDED, PositionState.GOOD
    assert picture([untried] * 3).plain == "[???]"
    assert picture([excluded, good, excluded, untried, excluded, excluded]).plain == "[G-?]"
    assert picture([]).plain == "[]"


def test_a_picture_fits_its_width_and_shows_what_ran():
    good, bad, untried = PositionState.GOOD, PositionState.BAD, PositionState.UNTRIED
    states = [good, *[untried] * 150, bad, *[untried] * 148]
    assert picture(states, 32).plain == f"[G{'?' * 14}B{'?' * 14}]"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (7200, "2.0 h")])
def test_durations_use_a_readable_unit(seconds, text):
    assert duration(seconds) == text


def test_skips_with_one_reason_are_one_line():
    out = io.StringIO()
    same = [(f"1.{number}", "needs Python 3.99") for number in range(20)]
    rows = skipped_rows([*same[:10], ("2.0", "crashed"), ("2.1", None), *same[10:]])
    print_rows(Console(file=out, width=100), rows)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "1.0 to 1.9 (10 releases) and 1.10 to 1.19 (10 releases): needs Python 3.99" in lines[0]
    assert lines[1].split() == ["skipped", "2.0:", "crashed"]


def test_skips_that_differ_only_in_the_folder_are_one_line():
    out = io.StringIO()
    folders = [f"/cache/environments/{number:020}/bin/python: No module named pytest" for number in range(3)]
    print_rows(Console(file=out), skipped_rows((f"1.{number}", reason) for number, reason in enumerate(folders)))
    [line] = out.getvalue().splitlines()
    assert "1.0 to 1.2 (3 releases)" in line
    assert "/cache" not in line


def played_again(view) -> None:
    """Two releases are run once, then again; another level begins in between."""
    for attempt in range(3):
        for name, verdict in (("1.1", Verdict.GOOD), ("1.2", Verdict.BAD if attempt < 2 else Verdict.GOOD)):
            view.report(Judged(run_label(name, attempt), Judgement(verdict, REASON), seen(f"{name}{attempt}"), False))
        if attempt == 1:
            view.report(LevelBegan(Level.PACKAGE, "only shop differs"))


@pytest.mark.parametrize("is_terminal", [False, True])
def test_repetitions_of_a_release_are_one_line_that_counts_up(is_terminal):
    out = io.StringIO()
    with reporting(Console(file=out, width=80, force_terminal=is_terminal, color_system=None), quiet=False) as view:
        played_again(view)
    text = re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "", out.getvalue())
    lines = [" ".join(line.split()) for line in text.splitlines() if "runs" in line]
    assert lines[:2] == ["good 1.1 2 of 2 runs", "bad 1.2 2 of 2 runs"]
    assert lines[-2:] == ["good 1.1 3 of 3 runs", "bad 1.2 2 of 3 runs"]
    assert "(run 2)" not in out.getvalue()


def test_another_search_counts_its_own_runs():
    out = io.StringIO()
    with reporting(Console(file=out, width=80, color_system=None), quiet=False) as view:
        for _ in range(2):
            view.report(SearchBegan("looking", ()))
            for attempt in range(2):
                view.report(Judged(run_label("1.1", attempt), Judgement(Verdict.GOOD, ""), seen("x"), False))
    assert out.getvalue().count("2 of 2 runs") == 2


def test_a_terminal_counts_repetitions_while_they_run():
    with LiveView(Console(file=io.StringIO(), force_terminal=True, width=100)) as view:
        for attempt in range(2):
            view.report(Judged(run_label("1.2", attempt), Judgement(Verdict.BAD, REASON), seen(str(attempt)), False))
        assert "bad      1.2         2 of 2 runs" in shown_by(view)


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_a_search_is_cut_inside_a_word(width):
    words = "AttributeError: module numpy has no attribute trapezoidal which was removed and replaced long ago"
    out = io.StringIO()
    with reporting(Console(file=out, width=width, force_terminal=True, color_system=None), quiet=False) as view:
        for label in ("1.2", "the good environment with numpy 2.0.0", f"reverted: {words}"):
            view.report(Judged(label, Judgement(Verdict.BAD, words), seen(label), cached=False))
        view.report(SignatureCaptured(Signature(exception="AttributeError", message=f"{words} " * 3), "the bad end"))
    shown = [word.strip('…:,"') for word in re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "", out.getvalue()).split()]
    known = {
        word.strip(":") for word in f"{words} reverted the good environment with 2.0.0 1.2 bad bug, from end".split()
    }
    assert [word for word in shown if word.isalpha() and len(word) > 3 and word not in known] == []
    assert all(len(line) <= width for line in out.getvalue().splitlines() if "\x1b" not in line)
