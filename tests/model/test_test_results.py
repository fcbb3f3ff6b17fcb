"""Test results are kept within limits, whatever a test suite reports."""

from __future__ import annotations

from attrs import evolve

from harness.model import RaisedException, StackFrame, TestOutcome, TestResult
from harness.model.tests import CAUSES_LIMIT, FRAMES_LIMIT, MESSAGE_LIMIT, TESTS_LIMIT, bounded


def test_the_number_of_results_is_limited():
    many = (TestResult(f"t::{i}", TestOutcome.PASSED) for i in range(TESTS_LIMIT + 5))
    kept = bounded(many)
    assert len(kept) == TESTS_LIMIT
    assert kept[-1].id == f"t::{TESTS_LIMIT - 1}"


def test_a_long_message_keeps_its_beginning_and_its_end():
    raised = RaisedException("builtins.ValueError", "begin " + "x" * 3 * MESSAGE_LIMIT + " end")
    (kept,) = bounded([TestResult("t", TestOutcome.FAILED, raised)])
    assert len(kept.exception.message) == MESSAGE_LIMIT
    assert kept.exception.message.startswith("begin ")
    assert kept.exception.message.endswith(" end")


def test_a_deep_traceback_keeps_its_outer_and_its_inner_frames():
    frames = tuple(StackFrame("a.py", line, "f") for line in range(10 * FRAMES_LIMIT))
    (kept,) = bounded([TestResult("t", TestOutcome.FAILED, RaisedException("E", "m", frames=frames))])
    assert len(kept.exception.frames) == FRAMES_LIMIT
    assert (kept.exception.frames[0], kept.exception.frames[-1]) == (frames[0], frames[-1])


def test_an_endless_chain_of_causes_is_cut():
    raised = RaisedException("E", "0")
    for i in range(5 * CAUSES_LIMIT):
        raised = evolve(RaisedException("E", str(i)), cause=raised)
    (kept,) = bounded([TestResult("t", TestOutcome.FAILED, raised)])
    depth, one = 0, kept.exception
    while one is not None:
        depth, one = depth + 1, one.cause
    assert depth == CAUSES_LIMIT


def test_short_results_are_unchanged():
    result = TestResult("t", TestOutcome.FAILED, RaisedException("E", "m", ("B",), (StackFrame("a", 1, "f"),)), 1.0)
    assert bounded([result]) == (result,)
