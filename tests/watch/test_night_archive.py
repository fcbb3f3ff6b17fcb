"""Nights are stored in one file each, and read back unchanged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from night_cells import FIRST, SECOND, known, night, record

from harness.store import Store
from harness.watch.record import Fix, NightArchive

values = st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False, width=32))


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> NightArchive:
    return NightArchive(Store(tmp_path_factory.mktemp("results")))


@given(st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=3))
def test_a_night_is_read_back_as_it_was(archive, choice):
    """Values keep their types: 1, True and "1" are different cells."""
    kept = night(record(choice=choice), breaks=(known(fixes=(Fix("a", "helper 1.3", SECOND),)),))
    archive.put(kept)
    (found,) = archive.all()
    assert found == kept
    assert {name: type(value) for name, value in found.cells[0].choice.items()} == {
        k: type(v) for k, v in choice.items()
    }


def test_an_unreadable_file_counts_as_absent(tmp_path):
    archive = NightArchive(Store(tmp_path))
    archive.put(night(record()))
    for name, text in {"half": '{"schema": 1, "matrix": "x', "later": '{"schema": 2}', "list": "[]"}.items():
        (tmp_path / "nights" / f"{name}.json").write_text(text, encoding="utf-8")
    assert len(archive.all()) == 1


def test_only_earlier_nights_are_compared_with(tmp_path):
    archive = NightArchive(Store(tmp_path))
    archive.put(night(record()))
    archive.put(night(record(), start=SECOND))
    assert [one.start for one in archive.before(datetime.fromisoformat(SECOND))] == [FIRST]


def test_a_stopped_night_can_resume_for_a_day(tmp_path):
    archive = NightArchive(Store(tmp_path))
    start = datetime(2024, 2, 1, 3, tzinfo=UTC)
    assert archive.start_of("nightly", start) == start
    archive.put(night(record(), start=start.isoformat(), ended=False))
    assert archive.start_of("nightly", start + timedelta(hours=5)) == start
    assert archive.start_of("other", start + timedelta(hours=5)) == start + timedelta(hours=5)
    assert archive.start_of("nightly", start + timedelta(hours=25)) == start + timedelta(hours=25)
    archive.put(night(record(), start=start.isoformat()))
    assert archive.start_of("nightly", start + timedelta(hours=5)) == start + timedelta(hours=5)
