"""Sizes: what people write is parsed, and what is shown can be parsed again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.size import parse_size, size_in_words


@pytest.mark.parametrize(
    ("text", "size"),
    [("8 GiB", 8 * 2**30), ("20GB", 20 * 10**9), (" 1.5 MiB ", 3 * 2**19), ("8", None), ("8 gib", None), ("", None)],
)
def test_a_size_has_a_number_and_a_unit(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (740 * 2**20, "740 MiB"),
        (2**30 - 1, "1.0 GiB"),
        (int(9.96 * 2**30), "10 GiB"),
    ],
)
def test_a_size_is_shown_in_two_digits(size, words):
    assert size_in_words(size) == words


@given(st.integers(min_value=1024, max_value=2**49))
def test_a_shown_size_parses_to_about_the_same(size):
    read = parse_size(size_in_words(size))
    assert read is not None
    assert abs(read - size) <= 0.051 * size
