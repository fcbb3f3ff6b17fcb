"""A signature distinguishes one bug from every other failure."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model import (
    Device,
    Observation,
    Outcome,
    RaisedException,
    Signature,
    StackFrame,
    Verdict,
    capture_signature,
    judge,
)
from harness.model.signature import normalized_message

FRAMES = (StackFrame("brittle/core.py", 12, "backward", "brittle"),)
CAUSE = RaisedException("builtins.KeyError", "'weights'")
RAISED = RaisedException(
    "torch.OutOfMemoryError",
    "Tried to allocate 20.00 GiB at 0x7f00 in /tmp/run1/model.py",
    bases=("builtins.RuntimeError", "builtins.Exception"),
    frames=FRAMES,
    cause=CAUSE,
)


def seen(outcome=Outcome.RAISED, **more):
    return Observation("key", outcome, "repro", "digest", Device.CPU, **more)


@given(st.text())
def test_normalising_twice_changes_nothing(message):
    once = normalized_message(message)
    assert normalized_message(once) == once


@given(st.integers(0, 10**9), st.integers(1, 2**48), st.text("abcxyz", min_size=1, max_size=8))
def test_numbers_addresses_and_paths_do_not_matter(number, address, name):
    assert normalized_message(f"at {hex(address)} in /tmp/{name}/x.py: {number} of 7") == normalized_message(
        "at 0xbeef in /home/me/y.py: 3 of 1.5e3"
    )


@pytest.mark.parametrize(
    "signature",
    [
        Signature(exception="OutOfMemoryError"),
        Signature(exception="torch.OutOfMemoryError"),
        Signature(exception="RuntimeError"),
        Signature(exception="builtins.RuntimeError"),
        Signature(message="Tried to allocate 3.50 GiB at 0xdead in /home/you/other.py"),
        Signature(message="Tried to   allocate"),
        Signature(frame="core.py:backward"),
        Signature(exception="RuntimeError", message="allocate", frame="brittle/core.py"),
        Signature(exception="KeyError", message="weights"),
    ],
)
def test_failures_that_match_an_exception(signature):
    assert signature.match(seen(exception=RAISED))


@pytest.mark.parametrize(
    "signature",
    [
        Signature(exception="MemoryError"),
        Signature(exception="Error"),
        Signature(exception="OutOfMemoryError", message="another message"),
        Signature(exception="OutOfMemoryError", frame="other.py"),
        Signature(exception="OutOfMemoryError", message="weights"),
        Signature(hang=True),
        Signature(crash=True),
        Signature(exit_code=3),
        Signature(output="never printed"),
    ],
)
def test_failures_that_do_not_match_an_exception(signature):
    assert signature.match(seen(exception=RAISED, exit_code=1), "log") == ""


def test_the_name_of_a_file_in_a_message_counts_though_its_folder_differs():
    missing = RaisedException("FileNotFoundError", "[Errno 2] No such file or directory: '/tmp/x1/weights.bin'")
    assert Signature(exception="FileNotFoundError", message="weights.bin").match(seen(exception=missing))
    assert not Signature(exception="FileNotFoundError", message="other.bin").match(seen(exception=missing))


@pytest.mark.parametrize(
    ("value", "found"), [(2.1, True), (2.0, False), (1.0, False), (0.9, True), (math.nan, True), (math.inf, True)]
)
def test_a_metric_is_bad_outside_its_bounds(value, found):
    signature = Signature(metric="loss", above=2.0, below=1.0)
    assert bool(signature.match(seen(Outcome.COMPLETED, metrics={"loss": value}))) is found


def test_a_missing_metric_is_unjudged_only_after_a_completed_run():
    signature = Signature(metric="loss", above=2.0)
    assert signature.match(seen(Outcome.COMPLETED)) is None
    assert signature.match(seen(Outcome.RAISED, exception=RAISED)) == ""


def test_a_line_of_the_log_is_found_anywhere():
    signature = Signature(output=r"^loss is nan$")
    assert signature.match(seen(Outcome.COMPLETED), "step 1\nloss is nan\nend\n") == "printed 'loss is nan'"
    assert signature.match(seen(Outcome.COMPLETED), "my loss is nan\n") == ""


def test_every_given_part_must_match():
    both = Signature(exit_code=3, output="panic")
    assert both.match(seen(Outcome.EXITED, exit_code=3), "panic") == "exit code 3; printed 'panic'"
    assert both.match(seen(Outcome.EXITED, exit_code=3), "calm") == ""
    assert both.match(seen(Outcome.EXITED, exit_code=4), "panic") == ""


def test_a_captured_signature_matches_its_failure():
    for observation, log in [
        (seen(exception=RAISED), ""),
        (seen(exception=RaisedException("builtins.AssertionError", "")), ""),
        (
            seen(Outcome.EXITED, exit_code=1),
            "Traceback:\nE   ValueError: 3 (of 4) items at 0xff in /a/b/c [x]\n1 failed",
        ),
        (seen(Outcome.EXITED, exit_code=1), "1 failed"),
        (seen(Outcome.TIMED_OUT), ""),
        (seen(Outcome.CRASHED), ""),
    ]:
        captured = capture_signature(observation, log)
        assert captured is not None
        assert captured.captured
        assert captured.match(observation, log)


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60))
@example("no <path>")
@example("<number> of <address>")
def test_a_captured_log_line_matches_the_log(message):
    log = f"E   ValueError: {message}\n"
    observation = seen(Outcome.EXITED, exit_code=1)
    assert capture_signature(observation, log).match(observation, log)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.EXITED, Outcome.TIMED_OUT, Outcome.CRASHED}))
def test_nothing_is_captured_without_a_recognisable_failure(outcome):
    assert capture_signature(seen(outcome)) is None


def test_a_signature_reads_like_a_sentence():
    signature = Signature(exception="ValueError", message="x", frame="a.py", metric="loss", above=2, hang=True)
    assert str(signature) == 'ValueError, "x", in a.py, loss above 2, a run past its time limit'


@pytest.mark.parametrize("pattern", [r"(a|aa)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_takes_too_long_is_a_skip(monkeypatch, pattern):
    monkeypatch.setattr("harness.model.signature._SEARCH_S", 0.3)
    seen = Observation("k", Outcome.EXITED, "r", "d", Device.CPU, exit_code=1)
    verdict = judge(seen, Signature(output=pattern), "a" * 5000 + "!")
    assert verdict.verdict is Verdict.SKIP


def test_a_captured_pattern_fails_fast_on_a_line_that_is_nearly_the_same():
    numbers = ",".join(map(str, range(60)))
    seen = Observation("k", Outcome.EXITED, "r", "d", Device.CPU, exit_code=1)
    captured = capture_signature(seen, f"ValueError: shapes ({numbers}) of /a/b/c.py and 0x7f differ by 1.5e-3")
    assert captured.match(seen, f"ValueError: shapes ({numbers}) of /x/y/z.py and 0x55 differ by -2.5e+3")
    other = ",".join(map(str, range(61)))
    assert captured.match(seen, f"ValueError: shapes ({other}) of /x/y/z.py and 0x55 differ by much") == ""


@pytest.mark.parametrize("ends", ["", ".", " .", ".\n"])
def test_a_full_stop_or_white_space_at_its_end_makes_no_other_message(ends):
    raised = RaisedException("builtins.ValueError", f"the shop is closed{ends}")
    seen = Observation("k", Outcome.RAISED, "r", "d", Device.CPU, exception=raised)
    for told in ("the shop is closed", "the shop is closed.", "the shop  is closed. "):
        assert Signature(exception="ValueError", message=told).match(seen)
    exited = evolve(seen, outcome=Outcome.EXITED, exit_code=1)
    captured = capture_signature(exited, f"ValueError: the shop is closed{ends}\n")
    assert captured is not None
    assert captured.match(exited, "ValueError: the shop is closed\n")
