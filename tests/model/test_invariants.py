"""What is the same in all runs with a bug, and what of it another failure lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.invariants import Invariants, Symptoms

VERSIONS = frozenset({"1.0", "1.1"})
ROWS = [("0.540", "0x7f10", 120), ("0.5401", "0x7f20", 777)]


def failed(message, printed="", versions=VERSIONS):
    return Symptoms.of({"": message}, printed, versions)


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("got 0.5402 for 'price' of <Shop at 0x7f12>", ""),
        ("got 0.54 for 'price' in /tmp/other/shop.py:12", ""),
        ("got 0.56 for 'price'", "its message has no 0.54"),
        ("got 0.54 for 'tax'", "its message has no 'price'"),
    ],
)
def test_a_message_must_have_the_values_of_the_bug(message, missing):
    bad = [failed(f"got {number} for 'price' of <Shop at {at}>, pid {pid}") for number, at, pid in ROWS]
    assert Invariants.of(bad, []).missing_in(failed(message)) == missing


@pytest.mark.parametrize(
    ("printed", "missing"),
    [
        ("tied: True\n", ""),
        ("loading\ntied: True\nsome warning: old\n", ""),
        ("tied: False\n", 'it did not print "tied: True"'),
        ("", 'it did not print "tied: True"'),
    ],
)
def test_a_run_must_print_the_lines_of_the_bug(printed, missing):
    noise = "loading\ntook 3 s\n/lib/shop.py:4: UserWarning: rates\n  warn()\nshop {}\n"
    raised = "Traceback (most recent call last):\n  File x\nWrong: {}\n"
    bad = [failed("", f"tied: True\n{noise.format('1.1')}{raised.format(number)}") for number in (3, 3)]
    good = Symptoms.of({}, noise.format("1.0"), VERSIONS)
    known = Invariants.of(bad, [good])
    assert known.missing_in(failed("", f"{printed}shop 1.0\nloading")) == missing


def test_of_one_run_nothing_is_known():
    assert Invariants.of([failed("got 0.54", "tied: True")], []).missing_in(failed("got 2", "tied: False")) == ""


def test_of_several_tests_that_fail_one_must_have_its_values():
    bad = [Symptoms.of({"a": "got 1", "b": "got 2"}, "")] * 2
    known = Invariants.of(bad, [])
    assert known.missing_in(Symptoms.of({"a": "got 5", "b": "got 2"}, "")) == ""
    assert known.missing_in(Symptoms.of({"b": "got 1"}, "")) == "its message has no 2"
    assert known.missing_in(Symptoms.of({"c": "got 9"}, "")) == ""


@given(st.lists(st.text(max_size=60), min_size=2, max_size=4), st.lists(st.text(max_size=60), max_size=2))
def test_each_run_that_was_learned_from_has_what_was_learned(bad, good):
    runs = [failed(text, text) for text in bad]
    known = Invariants.of(runs, [Symptoms.of({}, text) for text in good])
    assert not any(known.missing_in(run) for run in runs)
    assert all(map(str, known.lines))
