"""The screen of a history, during the scan and at the end."""

from __future__ import annotations

import io

from attrs import evolve
from rich.console import Console

from harness.bisection.history import BrokenWindow, History, HistoryStatus, ReleaseRow, RowState
from harness.model import Signature
from harness.terminal import print_history

STATES = {state.symbol: state for state in RowState}
HISTORY = History(
    subject="shop",
    repro="sale",
    status=HistoryStatus.BROKEN,
    sentence="shop with sale: broken in 1.1 only, good from 1.3.",
    signature=Signature(exception="ValueError"),
    windows=(BrokenWindow("1.1", "1.1", "1.0", "1.3"),),
    unseen=(),
    rows=tuple(ReleaseRow(f"1.{i}", STATES[letter], "a [reason]") for i, letter in enumerate("GBxGgS")),
    steps=(),
    notes=("1.4 was [not] run.",),
    advice="harness bisect shop",
)


def shown(history):
    out = io.StringIO()
    print_history(Console(file=out, soft_wrap=True), history, "results")
    return out.getvalue()


def test_an_answer_has_its_sentence_picture_limits_and_skips():
    text = shown(HISTORY)
    assert "shop with sale: broken in 1.1 only, good from 1.3.\n" in text
    assert "[GBGgS]  1.0 to 1.5" in text
    assert "  1.4 was [not] run." in text
    assert any(line.split()[:2] == ["skipped", "1.5:"] and "a [reason]" in line for line in text.splitlines())
    assert "recognised by: ValueError" in text
    assert "0 runs; 5 releases in the range" in text
    assert text.endswith("harness bisect shop\n")


def test_without_advice_the_counts_are_the_last_line():
    assert shown(evolve(HISTORY, advice="")).rstrip().endswith("records in results")
