"""The news of a night: a heading for each kind, nothing if nothing changed; the exit code and the page."""

from __future__ import annotations

import pytest
from night_cells import FIRST, SECOND, THIRD, broken, night, past, state

from harness.redact import Private
from harness.report.archive import Archive
from harness.store import Store
from harness.watch.news import exit_code, news_of, nights_of, write_page
from harness.watch.state import CellStatus, NightArchive

BEFORE = past(night(state("a"), state("b")))


@pytest.mark.parametrize(
    ("tonight", "code"),
    [
        (night(state("a"), start=SECOND), 0),
        (night(broken("a"), start=SECOND), 1),
        (night(state("a", CellStatus.TURNED), start=SECOND), 1),
        (night(state("a", CellStatus.FLAKY), start=SECOND), 0),
        (night(state("a", CellStatus.UNJUDGED), state("b"), start=SECOND), 0),
        (night(state("a", CellStatus.UNJUDGED), state("b", CellStatus.LEFT), start=SECOND), 3),
    ],
)
def test_the_exit_code_tells_whether_anything_new_broke(tonight, code):
    assert exit_code(tonight, BEFORE) == code


def test_an_unjudged_cell_is_news_once_even_if_a_path_changes():
    first, again, other = (
        night(state("a", CellStatus.UNJUDGED, reason=reason), start=start)
        for reason, start in (("no x in /cache/1a2b/x.py", FIRST), ("no x in /cache/3c4d/x.py", SECOND), ("why", THIRD))
    )
    assert news_of(first, past()) == {"could not be judged": ("a: no x in /cache/1a2b/x.py",)}
    assert news_of(again, past(first)) == {}
    silent = ("no cell was judged in 3 nights in a row",)
    assert news_of(other, past(first, again)) == {"nothing judged": silent, "could not be judged": ("a: why",)}


def test_each_kind_of_news_has_its_heading():
    before = past(night(state("a"), state("b"), state("c"), broken("d", "cd"), state("e", CellStatus.BEFORE)))
    tonight = night(
        state("a", CellStatus.TURNED, reason="bad"),
        state("b", CellStatus.LEFT),
        state("c", CellStatus.FLAKY, reason="now and then", observation="tonight"),
        state("d", changed="helper 1.2 -> 1.3"),
        state("e"),
        broken("f"),
        start=SECOND,
    )
    assert news_of(tonight, before) == {
        "newly broken": ("Its answer, ab, is gone. Seen in nightly: f",),
        "broken, cause not found yet": ("a: bad",),
        "fixed": (
            "cause cd: nightly: d good again with helper 1.2 -> 1.3, and no cell is broken by it any more",
            "e is good now; it was broken before the first night",
        ),
        "flaky": ("c: now and then",),
        "left for tomorrow": ("b",),
    }


def test_nights_are_newest_first_and_causes_show_when_they_were_last_seen():
    nights = night(broken("a")), night(broken("a"), start=SECOND)
    content = nights_of(nights, past().archive)
    assert [row["day"] for row in content["nights"]] == ["2024-02-02 00:00", "2024-02-01 00:00"]
    assert [(row["state"], row["counts"]) for row in content["nights"]] == [("good", "1 broken"), ("bad", "1 broken")]
    assert [row["quiet"] for row in content["nights"]] == [
        "nothing changed",
        "the first night: nothing to compare with",
    ]
    (row,) = content["open"]
    assert (row["break"].first_seen, row["last_seen"], row["report"]) == (FIRST, SECOND, "")
    content = nights_of((*nights, night(state("a"), start=THIRD)), past().archive)
    assert (content["open"], content["closed"][0]["last_seen"]) == ([], SECOND)


def test_the_page_links_what_exists_escapes_text_and_has_no_private_data(tmp_path):
    store = Store(tmp_path)
    store.write("reports/ab.html", "")
    store.write("matrices/nightly.html", "")
    cell = state("b", CellStatus.UNJUDGED, reason="a <b>word</b> of secrecy in /home/someone/x")
    NightArchive(store).put(night(broken("a"), cell))
    text = write_page(store, Private({"secrecy": "<secret>"})).read_text(encoding="utf-8")
    assert '<a href="../reports/ab.html">cause ab</a>' in text
    assert '<a href="../matrices/nightly.html">nightly</a>' in text
    assert not any(word in text for word in ("<b>word", "secrecy", "/home/someone"))
    assert Archive(store).all() == []
