"""What a person sees of a history, while it is scanned and when it is done."""

from __future__ import annotations

import io

import pytest
from attrs import evolve
from rich.console import Console
from support import repro_text

from harness.history import (
    BrokenWindow,
    History,
    HistoryProgress,
    HistoryStatus,
    ReleaseRow,
    make_history_plan,
)
from harness.history.answer import RowState
from harness.model import Device, Judgement, Observation, Outcome, Signature, Verdict
from harness.model.repro import parse_repro
from harness.request.question import Question
from harness.search import WindowScan
from harness.terminal import LiveView, PlainView, print_history

STATES = {state.symbol: state for state in RowState}
HISTORY = History(
    subject="shop",
    repro="sale",
    status=HistoryStatus.BROKEN,
    sentence="shop with sale: broken in 1.1 alone, good from 1.3.",
    signature=Signature(exception="ValueError"),
    windows=(BrokenWindow("1.1", "1.1", "1.0", "1.3"),),
    unseen=(),
    rows=tuple(ReleaseRow(f"1.{i}", STATES[letter], "a [reason]") for i, letter in enumerate("GBxGgS")),
    steps=(),
    notes=("1.4 was [not] run.",),
    advice="harness bisect shop",
)


@pytest.fixture
def progress(parts, interpreter):
    repro = parse_repro(repro_text("brittle"), name="step")
    chosen = {"since": "1.0", "until": "1.9", "max_gap": 3}
    made = make_history_plan(
        Question("brittle", repro), index=parts.index, interpreter=interpreter, device=Device.CPU, **chosen
    )
    return HistoryProgress(made.plan, WindowScan(len(made.plan.releases), max_gap=made.stride))


def play(view, progress):
    """Both ends are judged, and one in the middle is running."""
    view.begin(progress)
    view.captured(Signature(exception="RuntimeError"))
    for position, verdict in ((9, Verdict.BAD), (0, Verdict.GOOD)):
        view.preparing(position)
        view.running(position)
        progress.search.tell(position, verdict)
        seen = Observation("k", Outcome.COMPLETED, "r", "d", Device.CPU, duration_s=1.0)
        view.told(position, Judgement(verdict, "a reason"), seen, cached=False)
    view.preparing(4)
    view.running(4)


def test_a_log_says_what_is_looked_for_and_what_is_left(progress):
    out = io.StringIO()
    play(PlainView(Console(file=out, width=60)), progress)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("looking for every window in which step was broken: brittle 1.0 to 1.9, 10 releases")
    assert "signature, taken from the first failing run: RuntimeError" in lines
    assert "1.9: bad (a reason) [1.0 s]" in lines
    assert any(line.startswith("  [G????????B]  at most ") for line in lines)
    assert lines[-1] == "1.4: running"


def test_a_terminal_shows_the_picture_and_what_runs(progress):
    console = Console(file=io.StringIO(), force_terminal=True, width=100, record=True)
    with LiveView(console) as view:
        play(view, progress)
        console.print(view._render())
    text = console.export_text()
    assert "[G????????B]" in text
    assert "1.4 running" in text


def shown(history):
    out = io.StringIO()
    print_history(Console(file=out, soft_wrap=True), history, "results")
    return out.getvalue()


def test_an_answer_has_its_sentence_picture_limits_and_skips():
    text = shown(HISTORY)
    assert "shop with sale: broken in 1.1 alone, good from 1.3.\n" in text
    assert "[GBGgS]  1.0 to 1.5" in text
    assert "  1.4 was [not] run." in text
    assert "skipped 1.5: a [reason]" in text
    assert "recognised by: ValueError" in text
    assert "0 of 5 releases run now, 0 known already" in text
    assert text.endswith("harness bisect shop\n")


def test_without_advice_the_counts_are_the_last_line():
    assert shown(evolve(HISTORY, advice="")).rstrip().endswith("records in results")
