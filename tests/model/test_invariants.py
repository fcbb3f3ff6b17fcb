"""What is the same in all runs with a bug, and what of it another failure lacks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import RaisedException, StackFrame
from harness.model.invariants import Invariants, Symptoms

VERSIONS = frozenset({"1.0", "1.1"})
ROWS = [("0.540", "0x7f10", 120), ("0.5401", "0x7f20", 777)]


def failed(message, printed="", *places, **metrics):
    frames = tuple(StackFrame(file, line, "f", package) for file, line, package in places)
    return Symptoms.of({"": RaisedException("E", message, frames=frames)}, printed, metrics, VERSIONS)


def failing(**messages):
    return Symptoms.of({test: RaisedException("E", message) for test, message in messages.items()})


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
    warning = "/here/check.py:1: DeprecationWarning: \nbirch will be required\n(for maple)\n        \n  import shop\n"
    bar = "\r  0%|   | 0/2 [00:00<?, ?it/s]"
    bad = [failed("", f"tied: True\n{noise.format('1.1')}{warning}{raised.format(number)}{bar}") for number in (3, 3)]
    good = Symptoms.of({}, noise.format("1.0"), versions=VERSIONS)
    known = Invariants.of(bad, [good])
    assert known.missing_in(failed("", f"{printed}shop 1.0\nloading")) == missing


def test_of_one_run_nothing_is_known():
    assert Invariants.of([failed("got 0.54", "tied: True")], []).missing_in(failed("got 2", "tied: False")) == ""


def test_of_several_tests_that_fail_one_must_have_its_values():
    bad = [failing(a="got 1", b="got 2")] * 2
    known = Invariants.of(bad, [])
    assert known.missing_in(failing(a="got 5", b="got 2")) == ""
    assert known.missing_in(failing(b="got 1")) == "its message has no 2"
    assert known.missing_in(failing(c="got 9")) == ""


def test_a_run_must_fail_at_the_line_of_the_users_code():
    made = ("<string>", 5, "")  # code that a package makes
    bad = [failed("", "", ("/run/1/check.py", 7, ""), made, ("shop.py", line, "shop")) for line in (3, 4)]
    known = Invariants.of(bad, [])
    assert known.missing_in(failed("", "", ("/run/2/check.py", 7, ""), ("till.py", 9, "till"))) == ""
    assert known.missing_in(failed("", "", ("/run/2/check.py", 8, ""))) == "it did not fail at check.py, line 7"


def test_a_run_must_write_the_numbers_of_the_bug_that_are_the_same_to_the_last_digit():
    bad = [failed("", price=0.54, took=took, loss=nan, size=3.0) for took, nan in ((1.01, math.nan), (1.02, math.nan))]
    known = Invariants.of(bad, [Symptoms.of({}, "", {"price": 2.0, "took": 0.1, "loss": 1.0, "size": 3.0})])
    assert known.missing_in(failed("", price=0.541, took=7.0, loss=math.nan)) == ""
    assert known.missing_in(failed("", price=1.5, loss=math.nan)) == "price is 1.5, not 0.54"
    assert known.missing_in(failed("", price=0.54, loss=1.0)) == "loss is 1, not nan"
    assert known.missing_in(failed("", loss=math.nan)) == "it did not write price"


@given(st.lists(st.text(max_size=60), min_size=2, max_size=4), st.lists(st.text(max_size=60), max_size=2))
def test_each_run_that_was_learned_from_has_what_was_learned(bad, good):
    runs = [failed(text, text) for text in bad]
    known = Invariants.of(runs, [Symptoms.of({}, text) for text in good])
    assert not any(known.missing_in(run) for run in runs)
    assert all(map(str, known.lines))
