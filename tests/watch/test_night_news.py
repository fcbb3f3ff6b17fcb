"""The news of a night: a heading for each kind, nothing if nothing changed, and an exit code."""

from __future__ import annotations

import pytest
from night_cells import FIRST, SECOND, known, night, record

from harness.watch.news import exit_code, news_of, one_line
from harness.watch.record import CellStatus, Fix, Past

BEFORE = Past.of((night(record("a"), record("b")),), "nightly")


@pytest.mark.parametrize(
    ("tonight", "code"),
    [
        (night(record("a"), start=SECOND), 0),
        (night(record("a", CellStatus.BROKEN), start=SECOND, breaks=(known(first_seen=SECOND),)), 1),
        (night(record("a", CellStatus.BROKEN), start=SECOND, breaks=(known(last_seen=SECOND),)), 0),
        (night(record("a", CellStatus.TURNED), start=SECOND), 1),
        (night(record("a", CellStatus.FLAKY), start=SECOND), 0),
        (night(record("a", CellStatus.UNJUDGED), record("b"), start=SECOND), 0),
        (night(record("a", CellStatus.UNJUDGED), record("b", CellStatus.LEFT), start=SECOND), 3),
    ],
)
def test_the_exit_code_tells_whether_anything_new_broke(tonight, code):
    assert exit_code(tonight, BEFORE) == code


def test_a_reopened_break_counts_as_broken():
    past = Past.of((night(record("a"), breaks=(known(closed=FIRST),)),), "nightly")
    tonight = night(record("a", CellStatus.BROKEN), start=SECOND, breaks=(known(last_seen=SECOND),))
    assert exit_code(tonight, past) == 1
    assert list(news_of(tonight, past)) == ["broken again"]


def test_a_night_without_news_is_one_line():
    tonight = night(record("a"), record("b"), start=SECOND)
    assert news_of(tonight, BEFORE) == {}
    assert one_line(tonight, BEFORE) == "nightly, night of 2024-02-02: nothing changed; 2 cells: 2 good; 0 run now"


def test_an_unjudged_cell_is_news_once():
    tonight = night(record("a", CellStatus.UNJUDGED, reason="unresolvable"), start=SECOND)
    assert news_of(tonight, BEFORE) == {"could not be judged": ("a: unresolvable",)}
    again = Past.of((night(record("a")), tonight), "nightly")
    assert news_of(tonight, again) == {}
    other = night(record("a", CellStatus.UNJUDGED, reason="out of memory"), start=SECOND)
    assert "could not be judged" in news_of(other, again)


def test_a_path_that_changes_every_night_is_no_news():
    nights = [
        night(record("a", CellStatus.UNJUDGED, reason=f"no name x in /cache/environments/{one}/x.py"), start=start)
        for one, start in (("1a2b", FIRST), ("3c4d", SECOND))
    ]
    assert news_of(nights[1], Past.of((nights[0],), "nightly")) == {}


def test_each_kind_of_news_has_its_heading():
    tonight = night(
        record("a", CellStatus.TURNED, reason="bad"),
        record("b", CellStatus.LEFT),
        record("c", CellStatus.FLAKY, reason="now and then"),
        record("d"),
        start=SECOND,
        breaks=(
            known("11", first_seen=SECOND),
            known("22", last_seen=SECOND, cells=("nightly: a", "nightly: x")),
            known(
                "33",
                fixes=(Fix("nightly: d", "helper 1.2 -> 1.3", SECOND), Fix("nightly: e", "tool 1 -> 2", FIRST)),
                closed=SECOND,
            ),
        ),
    )
    past = Past.of((night(record("d", CellStatus.BEFORE)),), "nightly")
    assert news_of(tonight, past) == {
        "newly broken": ("helper 1.2 broke it. Seen in nightly: a",),
        "broken, cause not found yet": ("a: bad",),
        "known breaks that reached more cells": ("helper 1.2 broke it. Seen in nightly: a; nightly: x",),
        "fixed": (
            "helper 1.2 breaks step: nightly: d good again with helper 1.2 -> 1.3, "
            "and no cell is broken by it any more",
            "d is good now; it was broken before the first night",
        ),
        "flaky": ("c: now and then",),
        "left for tomorrow": ("b",),
    }
