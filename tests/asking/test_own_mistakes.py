"""A failure that is the repro's own mistake is told from one that no release is free of."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import make_answer

from harness.asking.answer import Status
from harness.asking.ask import refuse_own_mistake
from harness.asking.both_ends import refuse_mistake
from harness.errors import UserMistake
from harness.model import Device, Observation, Outcome, RaisedException
from harness.model.observation import WHOLE_RUN, TestOutcome, TestResult
from harness.model.repro import command_repro
from harness.store import Store

MISSING = RaisedException("builtins.Failed", "fixture 'shop_window' not found")
OTHER = RaisedException("builtins.AssertionError", "assert 1 == 2")


def run_with(*raised: RaisedException) -> Observation:
    tests = tuple(TestResult(f"t.py::{n}", TestOutcome.ERROR, exception=one) for n, one in enumerate(raised))
    return Observation("k", Outcome.EXITED, "pytest", "d", Device.CPU, tests=tests)


def judged(tmp_path, *ends: Observation, status: Status = Status.NOT_A_REGRESSION) -> None:
    refuse_own_mistake(evolve(make_answer("shop", status=status), ends=ends), Store.opened(tmp_path))


def test_a_fixture_that_is_missing_at_both_ends_is_a_mistake(tmp_path):
    with pytest.raises(UserMistake) as raised:
        judged(tmp_path, run_with(MISSING), run_with(MISSING, MISSING))
    assert "no upgrade broke these tests: fixture 'shop_window' not found" in raised.value.message
    assert "--with PLUGIN" in raised.value.hint


@pytest.mark.parametrize(
    "runs",
    [
        (run_with(MISSING), run_with(OTHER)),
        (run_with(MISSING, OTHER), run_with(MISSING, OTHER)),
        (run_with(MISSING),),
        (run_with(MISSING), run_with()),
    ],
)
def test_one_end_or_one_of_several_tests_is_not_enough(tmp_path, runs):
    judged(tmp_path, *runs)


def test_a_found_answer_is_left_alone(tmp_path):
    judged(tmp_path, run_with(MISSING), run_with(MISSING), status=Status.FOUND)


@pytest.mark.parametrize(
    ("mistake", "hint"),
    [("no such file: tests/test_b.py", "harness probe --again k"), ("no tests were found", "--project")],
)
def test_no_older_package_is_tried_for_a_command_that_names_nothing(mistake, hint):
    """pytest has one result then: that of the whole run."""
    named = TestResult(WHOLE_RUN, TestOutcome.ERROR, exception=RaisedException("Exited", f"ERROR: {mistake}"))
    tests = (named,) if "file" in mistake else ()
    run = Observation("k", Outcome.EXITED, "pytest", "d", Device.CPU, tests=tests, mistake=mistake)
    with pytest.raises(UserMistake, match=mistake) as raised:
        refuse_mistake(run, command_repro("pytest tests/test_b.py"))
    assert hint in raised.value.hint
