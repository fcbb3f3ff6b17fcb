"""What follows from the rows and boundaries of a history: windows, doubts, gaps, sentences, and the next command."""

from __future__ import annotations

from itertools import pairwise

import pytest
from attrs import evolve

from harness.bisection.answer import QuestionRecord
from harness.bisection.history import BrokenWindow, History, HistoryStatus, ReleaseRow, RowState, spanned, window_text
from harness.model import Change, Device, Observation, Outcome, Repro, Verdict
from harness.model.boundary import Boundary
from harness.model.verdict import Step

STATES = {state.symbol: state for state in RowState}
RUN = Observation("key", Outcome.COMPLETED, "sale", "digest", Device.CPU)


def history(picture, *, unconfirmed=(), runs=2, typed=()):
    """The history of releases 1.0, 1.1, ...; the changes with a number in `unconfirmed` are not shown by their runs."""
    rows = tuple(ReleaseRow(f"1.{i}", STATES[letter], "yanked") for i, letter in enumerate(picture))
    judged = [row for row in rows if row.is_judged]
    changes = [(older, newer) for older, newer in pairwise(judged) if older.state != newer.state]
    boundaries = tuple(
        Boundary(
            Change("shop", older.release, newer.release, is_fix=older.state is RowState.BAD),
            sides=() if number in unconfirmed else (RUN, RUN),
        )
        for number, (older, newer) in enumerate(changes)
    )
    steps = tuple(Step(row.release, Verdict(row.state.value), "", "key", cached=False, seconds=1.0) for row in judged)
    asked = QuestionRecord("shop", Repro("sale", "digest", ""), typed=typed)
    return History(asked, None, boundaries, rows, steps * runs)


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


@pytest.mark.parametrize(
    ("picture", "windows", "status"),
    [
        ("GBBG", [("1.0", "1.1", "1.2", "1.3")], HistoryStatus.BROKEN),
        ("GBBGB", [("1.0", "1.1", "1.2", "1.3"), ("1.3", "1.4", "1.4", None)], HistoryStatus.BROKEN),
        ("BGgGB", [(None, "1.0", "1.0", "1.1"), ("1.3", "1.4", "1.4", None)], HistoryStatus.BROKEN),
        ("SBxB", [(None, "1.1", "1.3", None)], HistoryStatus.BROKEN),
        ("GSB", [("1.0", "1.2", "1.2", None)], HistoryStatus.UNSURE),
        ("SBBG", [(None, "1.1", "1.2", "1.3")], HistoryStatus.BROKEN),
        ("SGgG", [], HistoryStatus.NEVER_BROKEN),
        ("SS", [], HistoryStatus.UNSURE),
    ],
)
def test_windows_follow_from_the_boundaries(picture, windows, status):
    found = history(picture)
    assert [(w.last_good, w.first_bad, w.last_bad, w.fixed_in) for w in found.windows] == windows
    assert (found.status, "Not sure" in found.sentence) == (status, status is HistoryStatus.UNSURE)


def test_what_hides_at_an_edge_is_named():
    (window,) = history("GxSBBSG").windows
    assert (window.unsure_before, window.unsure_after) == (("1.2",), ("1.5",))
    assert window.left_out == {"1.1": "yanked"}


def test_releases_whose_runs_do_not_show_their_side_are_named():
    assert history("GBBG", unconfirmed=[1]).windows[0].unconfirmed == ("1.2", "1.3")
    assert history("GBB", runs=1).windows[0].unconfirmed == ("1.2",)  # the newest failed only once
    alone = history("BB")
    rows = tuple(evolve(row, is_flaky=True) for row in alone.rows)
    assert evolve(alone, rows=rows).windows[0].unconfirmed == ("1.0", "1.1")
    unsure = history("GBBG", unconfirmed=[1], typed=("--repro", "sale"))
    assert unsure.advice.endswith("harness bisect shop --repro sale --flaky")


def test_without_a_window_it_says_which_releases_were_judged():
    assert history("SGgG").sentence == "shop with sale: no broken release found from 1.1 to 1.3."
    assert history("SS").sentence == "Not sure: no release of shop could be judged."


def test_gaps_are_named_with_what_could_hide_there():
    assert history("GggGgGBbB").notes == (
        "1.1 to 1.2 and 1.4 lie between good runs and were not run; a window of at most 2 releases could hide there.",
        "1.7 lies between bad runs and was not run; a good range of 1 release could hide there.",
    )
    (gaps,) = history("GgSgGSG").unseen
    assert (gaps.gaps, gaps.longest) == ((("1.1",), ("1.3",)), 3)
    assert history("GgG").advice.endswith("--max-gap 1")


def test_a_release_excluded_at_an_edge_is_named_with_its_reason():
    (note,) = history("GxBG").notes
    assert note == "1.1 lies at an edge of the window from 1.2 on and was left out: yanked."


def test_the_suggestion_bisects_the_newest_break_with_the_same_repro():
    found = history("GBBG", typed=("--repro", "sale"))
    assert found.advice.endswith("harness bisect shop --repro sale --good 1.0 --bad 1.1")
    assert history("GG").advice == ""


def test_a_range_reads_as_its_ends():
    assert (spanned(["1"]), spanned(["1", "2", "3"])) == ("1", "1 to 3")
