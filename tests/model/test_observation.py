"""An outcome says what happened; the results of tests are kept within bounds."""

from __future__ import annotations

import pytest
from attrs import evolve

from harness.bisection.failures import FailureJudge
from harness.model import (
    Device,
    Observation,
    Outcome,
    RaisedException,
    Signature,
    StackFrame,
    TestOutcome,
    TestResult,
    Verdict,
    judge,
)
from harness.model.observation import CAUSES_LIMIT, FRAMES_LIMIT, MESSAGE_LIMIT, TESTS_LIMIT, bounded


@pytest.mark.parametrize("outcome", list(Outcome))
def test_inconclusive_outcomes_are_neither_good_nor_bad(outcome):
    run = Observation("k", outcome, "step", "d", Device.CPU, exit_code=1)
    verdict = judge(run, Signature(exit_code=1)).verdict
    assert (verdict is Verdict.SKIP) is not outcome.may_show_bug
    said = FailureJudge(Signature(exit_code=1), None)(run)
    assert (said.verdict is Verdict.SKIP and not said.differs) is not outcome.may_show_bug


def test_outcomes_without_a_run_are_inconclusive():
    assert not any(outcome.may_show_bug for outcome in Outcome if not outcome.ran)


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
