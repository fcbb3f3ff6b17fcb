"""The sentences of a history: windows, doubts, gaps, and the next command."""

from __future__ import annotations

import pytest

from harness.bisection.history import (
    BrokenWindow,
    History,
    HistoryStatus,
    ReleaseRow,
    RowState,
    UntestedGaps,
    advice_for,
    notes_for,
    sentence_for,
    spanned,
    window_text,
)
from harness.model import Verdict

STATES = {state.symbol: state for state in RowState}


def history(picture="GBBG", *windows, status=HistoryStatus.BROKEN, unseen=()):
    rows = tuple(ReleaseRow(f"1.{i}", STATES[letter], "why") for i, letter in enumerate(picture))
    return History("shop", "sale", status, "", None, windows, unseen, rows, ())


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (BrokenWindow("4.53.0", "4.57.6", "4.52.4", "5.0.0"), "broken 4.53.0 to 4.57.6, good from 5.0.0"),
        (BrokenWindow("1.1", "1.1", "1.0", "1.2"), "broken in 1.1 only, good from 1.2"),
        (BrokenWindow("1.1", "1.3", "1.0", None), "broken from 1.1 and still in 1.3"),
        (BrokenWindow("1.0", "1.3", None, "1.4"), "already broken in 1.0, up to 1.3, good from 1.4"),
        (BrokenWindow("1.0", "1.3", None, None), "broken in every release that could be judged, 1.0 to 1.3"),
    ],
)
def test_a_window_names_its_first_and_last_release(window, text):
    assert window_text(window) == text


def test_the_sentence_names_every_window():
    first, second = BrokenWindow("1.1", "1.2", "1.0", "1.3"), BrokenWindow("1.4", "1.4", "1.3", None)
    told = sentence_for(history("GBBGB", first, second))
    assert told == "shop with sale: broken 1.1 to 1.2, good from 1.3; broken from 1.4 and still in 1.4."


def test_a_skip_before_an_open_end_makes_nothing_unsure():
    window = BrokenWindow("1.1", "1.2", None, "1.3", unsure_before=("1.0",))
    found = history("SBBG", window)
    assert window.is_certain
    assert "Not sure" not in sentence_for(found)


def test_without_a_window_it_says_which_releases_were_judged():
    told = sentence_for(history("SGgG", status=HistoryStatus.NEVER_BROKEN))
    assert told == "shop with sale: no broken release found from 1.1 to 1.3."


def test_it_says_so_if_nothing_could_be_judged():
    assert sentence_for(history("SS", status=HistoryStatus.UNSURE)) == "Not sure: no release of shop could be judged."


def test_gaps_are_named_with_what_could_hide_there():
    gaps = (("1.1", "1.2"), ("1.4",))
    notes = notes_for(
        history("GggGgG", unseen=(UntestedGaps(Verdict.GOOD, gaps, 2), UntestedGaps(Verdict.BAD, (("1.9",),), 1)))
    )
    assert notes == (
        "1.1 to 1.2 and 1.4 lie between good runs and were not run; a window of at most 2 releases could hide there.",
        "1.9 lies between bad runs and was not run; a good range of 1 release could hide there.",
    )


def test_a_release_excluded_at_an_edge_is_named_with_its_reason():
    window = BrokenWindow("1.2", "1.2", "1.0", "1.3", left_out={"1.1": "yanked"})
    (note,) = notes_for(history("GxBG", window))
    assert note == "1.1 lies at an edge of the window from 1.2 on and was left out: yanked."


def test_the_suggestion_bisects_the_newest_break_with_the_same_repro():
    window = BrokenWindow("1.1", "1.2", "1.0", "1.3")
    told = advice_for(history("GBBG", window), ("--repro", "sale"))
    assert told.endswith("harness bisect shop --repro sale --good 1.0 --bad 1.1")


def test_there_is_no_suggestion_if_everything_is_good():
    assert advice_for(history("GG", status=HistoryStatus.NEVER_BROKEN), ()) == ""


def test_a_range_reads_as_its_ends():
    assert (spanned(["1"]), spanned(["1", "2", "3"])) == ("1", "1 to 3")
