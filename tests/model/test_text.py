"""No text of a probe controls a terminal; numbers, lists and sizes read as if a person wrote them; JSON is plain."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.text import (
    counted,
    listed,
    listed_in_order,
    numbered_lines,
    one_line,
    parse_size,
    plain,
    size_in_words,
    to_json,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07after", "after"),
        ("\x9b2Jx\x9d0;t\x9cy", "xy"),
        ("\x1bcreset", "reset"),
        ("\x1b(Bx", "x"),
        ("\x1b]8;;never ended", "8;;never ended"),
        ("10%\r55%\r100%\r\nend", "100%\nend"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("tab\tand\nline \U0001f600 é", "tab\tand\nline \U0001f600 é"),
    ],
)
def test_control_characters_are_removed_and_text_stays(text, shown):
    assert plain(text) == shown


@settings(deadline=None)
@given(st.text(st.characters(codec=None) | st.sampled_from("\x1b\x9b\x9d\x07\r[];m\u202e\ud800")))
def test_no_control_character_is_left(text):
    safe = plain(text)
    safe.encode()
    assert not any((c < " " and c not in "\t\n") or "\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e" for c in safe)
    assert plain(safe) == safe
    assert "\n" not in one_line(text, 10)
    assert len(one_line(text, 10)) <= 10


@pytest.mark.parametrize("piece", ["\x9d", "\x1b]", "\x1b[", "\x90a", "\x1b[0;", "\x9b0", "\x1b "])
def test_many_unterminated_escapes_take_linear_time(piece):
    """Quadratic time would take hours here."""
    assert len(plain(piece * 1_000_000)) <= 3_000_000


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


def refuse(word):
    raise ValueError(word)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_become_null(value):
    told = to_json({"metrics": {"loss": value, "list": [value, (value, 1.5)]}})
    assert json.loads(told, parse_constant=refuse) == {"metrics": {"loss": None, "list": [None, [None, 1.5]]}}


def test_unencodable_text_is_replaced():
    told = json.loads(to_json({"a\ud800": "b\udfff \U0001f600 é \ufeff"}))
    assert told == {"a\ufffd": "b\ufffd \U0001f600 é \ufeff"}


def test_lines_are_named_once_for_all_their_numbers():
    assert numbered_lines([(6, 6)]) == "line 6"
    assert numbered_lines([(10, 11)]) == "lines 10-11"
    assert numbered_lines([(10, 11), (15, 15), (20, 29)]) == "lines 10-11, 15 and 20-29"
    assert numbered_lines([(6, 6), (7, 8), (9, 9), (11, 11)]) == "lines 6-9 and 11"
    assert numbered_lines([(6, 5), (6, 6)]) == "lines 6 and 6"
    assert numbered_lines([(1, 1), (3, 3), (5, 5), (7, 7)]) == "lines 1, 3 and 2 more"
