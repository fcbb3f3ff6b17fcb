"""The page of all nights links existing pages, and shows text of a run without markup."""

from __future__ import annotations

from night_cells import SECOND, known, night, record

from harness.redact import Private
from harness.store import Store
from harness.watch.news import nights_of, write_page
from harness.watch.record import CellStatus, NightArchive

BROKEN = record("a", CellStatus.BROKEN, broken_by="ab")


def test_nights_are_newest_first_and_breaks_show_when_they_were_last_seen(tmp_path):
    nights = (night(record("a"), breaks=(known(),)), night(BROKEN, start=SECOND))
    found = nights_of(nights, tmp_path)
    assert [row["day"] for row in found["nights"]] == ["2024-02-02 00:00", "2024-02-01 00:00"]
    assert found["nights"][1]["state"] == "bad"
    assert found["nights"][0]["counts"] == "1 broken"
    (row,) = found["open"]
    assert (row["break"].first_seen[:10], row["last_seen"][:10], row["report"]) == ("2024-02-01", "2024-02-02", "")
    assert found["closed"] == []


def test_a_quiet_night_differs_from_the_first_night(tmp_path):
    found = nights_of((night(record("a")), night(record("a"), start=SECOND)), tmp_path)
    assert [row["quiet"] for row in found["nights"]] == ["nothing changed", "the first night: nothing to compare with"]


def test_existing_reports_and_matrix_pages_are_linked(tmp_path):
    store = Store(tmp_path)
    store.write("reports/ab.html", "")
    store.write("matrices/nightly.html", "")
    NightArchive(store).put(night(BROKEN, breaks=(known(),)))
    text = write_page(store, Private()).read_text(encoding="utf-8")
    assert '<a href="../reports/ab.html">helper 1.2 breaks step</a>' in text
    assert '<a href="../matrices/nightly.html">nightly</a>' in text
    assert "prefers-color-scheme: dark" in text


def test_text_is_escaped_and_private_data_removed(tmp_path):
    store = Store(tmp_path)
    odd = known(title="<script>", sentence="it broke in /home/someone/x", closed=SECOND)
    NightArchive(store).put(night(record("a", CellStatus.UNJUDGED, reason="a <b>word</b> of secrecy"), breaks=(odd,)))
    text = write_page(store, Private({"secrecy": "<secret>"})).read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert "<b>word" not in text
    assert "secrecy" not in text
    assert "/home/someone" not in text
