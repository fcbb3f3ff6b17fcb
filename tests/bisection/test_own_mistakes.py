"""A command that names nothing is refused after one run."""

from __future__ import annotations

import pytest

from harness.bisection.both_ends import refuse_mistake
from harness.errors import UserMistake
from harness.model import Device, Observation, Outcome, RaisedException
from harness.model.observation import WHOLE_RUN, TestOutcome, TestResult
from harness.model.repro import command_repro


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
