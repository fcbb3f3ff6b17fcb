"""Which outcomes say something about the bug, and which do not."""

from __future__ import annotations

import pytest

from harness.bisect.standing import Standing, stand_of_command
from harness.model import Device, Observation, Outcome, Signature, Verdict, judge
from harness.probe import Judge


@pytest.mark.parametrize("outcome", list(Outcome))
def test_inconclusive_outcomes_are_neither_good_nor_bad(outcome):
    run = Observation("k", outcome, "step", "d", Device.CPU, exit_code=1)
    verdict = judge(run, Signature(exit_code=1)).verdict
    assert (verdict is Verdict.SKIP) is not outcome.may_show_bug
    stood = stand_of_command(Judge(Signature(exit_code=1), None))(run)
    assert (stood.standing is Standing.UNTESTED) is not outcome.may_show_bug


def test_outcomes_without_a_run_are_inconclusive():
    assert not any(outcome.may_show_bug for outcome in Outcome if not outcome.ran)
