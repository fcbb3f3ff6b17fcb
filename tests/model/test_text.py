"""No text from a probe can control a terminal or a browser."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.text import one_line, plain


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
