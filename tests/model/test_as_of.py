"""A day is parsed in one place: era, none, or a date in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.model.as_of import AsOf, moment_of

OWN = datetime(2024, 5, 1, tzinfo=UTC)
DAY = datetime(2025, 6, 27, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "of"),
    [(None, None), ("none", None), ("era", OWN), ("2025-06-27", DAY), ("2025-06-27T02:00:00+02:00", DAY)],
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
    assert moment_of("2025-06-27T12:00").hour == 12
