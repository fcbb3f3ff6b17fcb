"""A combination does not depend on the order of what does not matter, and a day is parsed in one place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve

from harness.model import Combination, Device
from harness.model.lock import AsOf, moment_of

ASKED = Combination("3.11.7", ("b", "a==1"))


def test_repetition_does_not_matter_but_order_does():
    """A resolver prefers earlier requirements."""
    assert Combination("3.11.7", ("b", "a==1", "b")) == ASKED
    assert Combination("3.11.7", ("a==1", "b")).resolution_key != ASKED.resolution_key
    assert evolve(ASKED, holds=("d", "c", "d")) == evolve(ASKED, holds=("c", "d"))


def test_the_device_does_not_change_the_question():
    assert evolve(ASKED, device=Device.CUDA).resolution_key == ASKED.resolution_key


def test_every_other_part_changes_the_question():
    others = [
        {"python": "3.12.1"},
        {"requirements": ("a==1",)},
        {"holds": ("c==1",)},
        {"as_of": datetime(2025, 1, 1, tzinfo=UTC)},
        {"near": "lock"},
        {"prereleases": ("a",)},
        {"from_source": ("a",)},
    ]
    assert len({ASKED.resolution_key, *(evolve(ASKED, **other).resolution_key for other in others)}) == 8


OWN = datetime(2024, 5, 1, tzinfo=UTC)
DAY = datetime(2025, 6, 28, tzinfo=UTC)  # the end of the 27th


@pytest.mark.parametrize(
    ("text", "of"),
    [(None, None), ("none", None), ("era", OWN), ("2025-06-27", DAY), ("2025-06-28T02:00:00+02:00", DAY)],
)
def test_accepted_days_are_parsed(text, of):
    assert AsOf.read(text).of(OWN) == of
    assert str(AsOf.read(text)) == (text or "none")


@pytest.mark.parametrize("text", ["", "yesterday", "Era", "2025-13-01", "27.06.2025"])
def test_an_invalid_day_is_refused(text):
    with pytest.raises(ValueError, match="2025-06-27"):
        AsOf.read(text)


def test_a_date_without_a_zone_is_in_utc():
    assert moment_of("2025-06-27") == DAY
    assert moment_of("2025-06-27", begins=True).day == 27
    assert moment_of("2025-06-27T12:00").hour == 12
