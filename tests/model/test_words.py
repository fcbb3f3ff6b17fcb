"""Lists and numbers read as if a person wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.words import counted, listed, listed_in_order


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ("", 3, ""),
        ("a", 3, "a"),
        ("ab", 3, "a and b"),
        ("abc", 3, "a, b and c"),
        ("abcd", 3, "a, b and 2 more"),
        ("abcde", 5, "a, b, c, d and e"),
        ("abcdefgh", 5, "a, b, c, d and 4 more"),
    ],
)
def test_many_names_are_cut_short(names, most, text):
    assert listed(names, most) == text


@given(st.integers(0, 40), st.integers(2, 9))
def test_every_name_is_shown_or_counted(count, most):
    text = listed([f"<{number}>" for number in range(count)], most)
    shown = text.count("<")
    more = int(text.rpartition(" and ")[2].removesuffix(" more")) if text.endswith(" more") else 0
    assert shown + more == count
    assert shown <= most


def test_one_item_is_singular():
    assert [counted(number, "cell") for number in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("aBc", "B"),
        ("ABc", "A and B"),
        ("xABCDx", "A to D (4 releases)"),
        ("ABCxDxEFGx", "A to C (3 releases), D and E to G (3 releases)"),
        ("AxBxCxDxExFxGxHx", "A, B, C, D, E and 3 more"),
        ("xyz", ""),
    ],
)
def test_releases_in_a_row_are_a_range(row, text):
    assert listed_in_order((letter, letter.isupper()) for letter in row) == text
