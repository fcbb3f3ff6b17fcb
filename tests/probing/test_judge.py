"""The judge reads the output of a run only if the signature needs it."""

from __future__ import annotations

import gzip

import pytest

from harness.model import Device, Observation, Outcome, RaisedException, Signature, Verdict
from harness.probing import Judge
from harness.store import Store


@pytest.fixture
def seen(tmp_path):
    """An observation whose log is in the store, and that store."""
    store = Store(tmp_path)

    def make(outcome: Outcome, printed: str = "", **more) -> tuple[Observation, Store]:
        path = store.log_path("ab")
        path.write_bytes(gzip.compress(printed.encode()))
        log = path.relative_to(tmp_path).as_posix()
        return Observation("ab", outcome, "step", "d", Device.CPU, log=log, **more), store

    return make


def test_an_output_signature_is_matched_against_the_log(seen):
    run, store = seen(Outcome.COMPLETED, "step 3: loss is nan")
    assert Judge(Signature(output="loss is nan"), store)(run).verdict is Verdict.BAD
    assert Judge(Signature(output="out of memory"), store)(run).verdict is Verdict.GOOD


def test_no_other_signature_needs_the_log(seen):
    run, _ = seen(Outcome.COMPLETED)
    assert Judge(Signature(exception="ValueError"), None)(run).verdict is Verdict.GOOD


def test_without_a_signature_nothing_is_bad(seen):
    judge = Judge(None, None)
    assert judge(seen(Outcome.COMPLETED)[0]).verdict is Verdict.GOOD
    assert judge(seen(Outcome.EXITED, detail="exit code 1")[0]).verdict is Verdict.SKIP


def test_a_failed_command_gives_a_signature_from_its_output(seen):
    run, store = seen(Outcome.EXITED, "ValueError: no 3 of them\n", exit_code=1)
    judge = Judge(None, store).or_captured(run)
    assert judge.signature.exit_code == 1
    assert judge(run).verdict is Verdict.BAD
    other, _ = seen(Outcome.EXITED, "KeyError: 3\n", exit_code=1)
    assert judge(other).verdict is Verdict.SKIP


def test_a_passing_run_gives_no_signature(seen):
    run, store = seen(Outcome.COMPLETED)
    given = Judge(Signature(hang=True), store)
    assert Judge(None, store).or_captured(run).signature is None
    assert given.or_captured(run) is given


def failed(message, name="TypeError"):
    raised = RaisedException(name, message)
    return Observation("ab", Outcome.RAISED, "step", "d", Device.CPU, exception=raised)


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("Trainer.__init__() got an unexpected keyword argument 'tokenizer'", Verdict.BAD),
        ("Trainer_inner.__init__() got an unexpected keyword argument 'tokenizer'", Verdict.BAD),
        ("replace() argument 2 must be str, not tuple", Verdict.SKIP),
        ("", Verdict.SKIP),
    ],
)
def test_of_mixtures_only_a_failure_like_the_one_that_is_searched_for_is_bad(message, verdict):
    bug = failed("Trainer.__init__() got an unexpected keyword argument 'tokenizer'")
    judge = Judge(Signature(exception="TypeError"), None)
    assert judge(failed(message)).verdict is Verdict.BAD
    assert judge.for_mixtures(bug)(failed(message)).verdict is verdict


def test_a_message_that_the_user_gave_is_enough_for_mixtures():
    judge = Judge(Signature(exception="TypeError", message="unexpected keyword"), None)
    failure = failed("f() got an unexpected keyword argument 'a'")
    assert judge.for_mixtures(failure)(failed("g() got an unexpected keyword argument 'b'")).verdict is Verdict.BAD


def test_a_strict_judge_of_mixtures_calls_only_what_looks_like_a_passing_release_good():
    def passed(size: float) -> Observation:
        return Observation("ab", Outcome.COMPLETED, "step", "d", Device.CPU, metrics={"size": size})

    judge = Judge(Signature(exception="TypeError"), None).for_mixtures(failed("no"), [passed(3), passed(3)])
    assert judge(passed(7)).verdict is Verdict.GOOD
    assert judge.strictly()(passed(7)).verdict is Verdict.SKIP
    assert judge.strictly()(passed(3)).verdict is Verdict.GOOD
    assert judge.strictly()(failed("no")).verdict is Verdict.BAD
