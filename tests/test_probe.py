"""The steps of a probe: combination, lock, environment, run, observation; and answers without a run."""

from __future__ import annotations

import threading

import pytest
from attrs import evolve
from support import MESSAGE, repro_text

from harness.errors import UserMistake
from harness.model import Combination, Device, Outcome, Signature
from harness.model.repro import parse_repro
from harness.probing import Cancelled, Probe, Prober, next_attempt
from harness.run.process import cancelled_by
from harness.run.runner import Terms


@pytest.fixture
def probe(interpreter):
    def make(*requirements, tool="", body=None, **more):
        repro = parse_repro(repro_text("brittle", tool=tool, body=body), name="step")
        return Probe(repro, Combination(interpreter.version, requirements, **more))

    return make


def test_an_observation_is_stored_with_its_context(parts, probe):
    prepared = parts.prober.prepare(probe("brittle==1.6"))
    seen = parts.prober.execute(prepared)
    assert (seen.outcome, seen.exception.name, seen.exception.message) == (Outcome.RAISED, "RuntimeError", MESSAGE)
    assert seen.lock.version_of("brittle") == "1.6"
    assert seen.requirements == ("brittle==1.6",)
    assert seen.loaded["brittle"] == ("brittle.py",)
    assert MESSAGE in parts.store.log(seen)
    assert parts.store.get(prepared.key) == seen
    assert list(parts.workspace.scratch.iterdir()) == []


def test_a_stored_run_needs_no_environment(parts, probe):
    parts.prober.execute(parts.prober.prepare(probe("brittle==1.2")))
    again = parts.prober.prepare(probe("brittle==1.2"))
    assert (again.cached, again.environment) == (True, None)
    assert parts.prober.execute(again) == again.observation
    assert not parts.prober.prepare(next_attempt(probe("brittle==1.2"))).cached


def test_the_store_answers_alone(parts, probe):
    assert parts.prober.known(probe("brittle==1.2")) is None
    parts.prober.resolve(probe("brittle==1.2"))
    assert parts.prober.known(probe("brittle==1.2")) is None
    seen = parts.prober.execute(parts.prober.prepare(probe("brittle==1.2")))
    assert parts.prober.known(probe("brittle==1.2")) == seen
    missing = parts.prober.prepare(probe("brittle==1.2,<1")).observation
    assert parts.prober.known(probe("brittle==1.2,<1")) == missing


def test_equal_locks_are_one_question(parts, probe):
    parts.prober.execute(parts.prober.prepare(probe("brittle==1.2")))
    assert parts.prober.prepare(probe("brittle<1.3,>1.1")).cached


def test_an_unresolvable_probe_is_stored_only_for_listed_releases(parts, probe):
    prepared = parts.prober.prepare(probe("brittle==1.2,<1"))
    assert prepared.observation.outcome is Outcome.UNRESOLVABLE
    assert "which are incompatible" in prepared.observation.detail
    assert parts.store.get(prepared.key) == prepared.observation
    unlisted = parts.prober.prepare(probe("brittle==9.9"))
    assert "brittle==9.9" in unlisted.observation.detail
    assert parts.store.get(unlisted.key) is None


def test_a_missing_gpu_is_a_mistake(parts, probe):
    with pytest.raises(UserMistake, match="no GPU"):
        parts.prober.prepare(probe("brittle==1.2", device=Device.CUDA))


def test_a_cancelled_run_leaves_no_record(parts, probe):
    prepared = parts.prober.prepare(probe("brittle==1.2", body="import time\ntime.sleep(600)\n"))
    cancel = threading.Event()
    cancel.set()
    with cancelled_by(cancel), pytest.raises(Cancelled):
        parts.prober.execute(prepared)
    assert parts.store.get(prepared.key) is None
    assert list(parts.workspace.scratch.iterdir()) == []


def test_cancelling_before_the_start_ends_at_once(parts, probe):
    cancel = threading.Event()
    cancel.set()
    with cancelled_by(cancel), pytest.raises(Cancelled):
        parts.prober.prepare(probe("brittle==1.3"))
    assert isinstance(evolve(parts.prober, terms=Terms("9.0")), Prober)


def test_a_damaged_log_is_run_again_if_needed(parts, probe):
    by_output = Signature(output="nothing of this kind")
    for signature, is_kept in ((by_output, False), (Signature(exception="ValueError"), True)):
        asked = probe("brittle==1.2")
        asked = evolve(asked, repro=evolve(asked.repro, signature=signature))
        seen = parts.prober.execute(parts.prober.prepare(asked))
        parts.store.log_path(seen.key).write_bytes(b"\x1f\x8b damaged")
        assert parts.prober.prepare(asked).cached is is_kept
