"""Lengths of time and dates as users write them."""

from __future__ import annotations

import pytest

from harness.environment.dates import as_of
from harness.errors import UserMistake
from harness.question.parsing import duration_in_words, read_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("10", 600), (" 2 M ", 120), ("0.5s", 0.5)]
)
def test_units_are_seconds_minutes_and_hours_with_minutes_as_default(text, seconds):
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "0", "-1m", "10 days", "1h30"])
def test_anything_else_is_refused(text):
    with pytest.raises(UserMistake):
        read_duration(text)


@pytest.mark.parametrize(("seconds", "told"), [(45, "45 s"), (600, "10 min"), (5400, "1.5 h")])
def test_a_duration_is_shown_in_its_largest_unit(seconds, told):
    assert duration_in_words(seconds) == told


@pytest.mark.parametrize("text", ["9999-12-31", "2999-01-01"])
def test_a_date_in_the_future_is_refused(text):
    with pytest.raises(UserMistake, match=f"--as-of {text} is in the future"):
        as_of(text)
