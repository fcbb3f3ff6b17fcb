"""A failure that does not match the signature is skip, never bad."""

from __future__ import annotations

import itertools

import pytest

from harness.model import Device, Observation, Outcome, RaisedException, Signature, Verdict, judge

MATCHING = {
    Signature(exception="RuntimeError"): {"exception": RaisedException("builtins.RuntimeError", "x")},
    Signature(metric="loss", above=1): {"metrics": {"loss": 2.0}},
    Signature(output="broken"): {},
    Signature(exit_code=7): {"exit_code": 7},
}
NEVER_JUDGED = {
    Outcome.UNRESOLVABLE,
    Outcome.UNINSTALLABLE,
    Outcome.NO_DEVICE,
    Outcome.DEVICE_FAILED,
    Outcome.MACHINE_FAILED,
    Outcome.EMULATION_GAP,
    Outcome.WRONG_ENVIRONMENT,
    Outcome.DECLINED,
    Outcome.OUT_OF_MEMORY,
    Outcome.NO_REPORT,
    Outcome.NO_PROGRAM,
    Outcome.NOT_MADE,
}


def seen(outcome, **more):
    return Observation("key", outcome, "repro", "digest", Device.CPU, **more)


@pytest.mark.parametrize(("outcome", "signature"), list(itertools.product(Outcome, MATCHING)))
def test_an_outcome_that_does_not_match_is_never_bad(outcome, signature):
    metrics = {"loss": 0.5}
    judgement = judge(seen(outcome, metrics=metrics), signature, "all is well")
    assert judgement.verdict is (Verdict.GOOD if outcome is Outcome.COMPLETED else Verdict.SKIP)
    assert judgement.reason


@pytest.mark.parametrize(("outcome", "signature"), list(itertools.product(Outcome, MATCHING)))
def test_a_match_is_bad_unless_the_repro_did_not_get_that_far(outcome, signature):
    judgement = judge(seen(outcome, **MATCHING[signature]), signature, "it is broken")
    assert judgement.verdict is (Verdict.SKIP if outcome in NEVER_JUDGED else Verdict.BAD)
    assert judgement.reason


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize(
    ("signature", "fitting"), [(Signature(hang=True), Outcome.TIMED_OUT), (Signature(crash=True), Outcome.CRASHED)]
)
def test_a_hang_or_crash_is_bad_if_it_is_the_signature(outcome, signature, fitting):
    expected = Verdict.BAD if outcome is fitting else Verdict.GOOD if outcome is Outcome.COMPLETED else Verdict.SKIP
    assert judge(seen(outcome), signature).verdict is expected


def test_a_missing_metric_is_a_skip_with_a_reason():
    judgement = judge(seen(Outcome.COMPLETED), Signature(metric="loss", above=1))
    assert (judgement.verdict, judgement.reason) == (
        Verdict.SKIP,
        "metric 'loss' was not written; the run wrote no number",
    )


def test_a_different_failure_is_named_as_such():
    judgement = judge(seen(Outcome.RAISED, detail="ValueError: y"), Signature(exception="RuntimeError"))
    assert judgement.reason == "failed differently: ValueError: y"
