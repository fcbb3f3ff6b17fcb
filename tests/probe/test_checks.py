"""What prepares later runs waits for the check of an environment."""

from __future__ import annotations

import threading
import time

import pytest
from support import repro_text

from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probe import Probe
from harness.probe.checks import Checks

WAIT_S = 30


@pytest.fixture
def slow(interpreter):
    """A probe whose run takes some seconds."""
    repro = parse_repro(repro_text("brittle", body="import time\n\ntime.sleep(3)\n"), name="slow")
    return Probe(repro, Combination(interpreter.version, ("brittle==1.6",)))


def waiting(checks, cancel=None):
    """An event that is set once a thread no longer waits for the checks."""
    done = threading.Event()
    threading.Thread(target=lambda: (checks.wait(cancel), done.set()), daemon=True).start()
    return done


def test_nobody_waits_without_a_check():
    assert waiting(Checks(WAIT_S)).wait(WAIT_S)


def test_others_wait_for_all_checks():
    checks = Checks(10 * WAIT_S)
    with checks.entered():
        with checks.entered():
            done = waiting(checks)
        assert not done.wait(0.4)
    assert done.wait(WAIT_S)


def test_nobody_waits_for_later_checks():
    checks, entered, leave = Checks(10 * WAIT_S), threading.Event(), threading.Event()

    def later():
        with checks.entered():
            entered.set()
            leave.wait(WAIT_S)

    with checks.entered():
        done = waiting(checks)
        assert not done.wait(0.2)
        threading.Thread(target=later, daemon=True).start()
        assert entered.wait(WAIT_S)
    assert done.wait(WAIT_S)
    assert not leave.is_set()
    leave.set()


def test_a_check_that_fails_is_over():
    checks = Checks(10 * WAIT_S)
    with pytest.raises(OSError), checks.entered():
        raise OSError
    assert waiting(checks).wait(WAIT_S)


def test_others_wait_no_longer_than_the_limit():
    checks = Checks(0.2)
    with checks.entered():
        begun = time.monotonic()
        checks.wait()
        assert time.monotonic() - begun >= 0.2


def test_waiting_can_be_cancelled():
    checks, cancel = Checks(10 * WAIT_S), threading.Event()
    with checks.entered():
        done = waiting(checks, cancel)
        cancel.set()
        assert done.wait(WAIT_S)


def test_a_probe_is_not_prepared_during_a_check(parts, slow):
    prepared = threading.Event()
    with parts.prober.checks.entered():
        threading.Thread(target=lambda: (parts.prober.prepare(slow), prepared.set()), daemon=True).start()
        assert not prepared.wait(0.5)
    assert prepared.wait(WAIT_S)


def test_others_can_be_prepared_during_a_run(parts, slow):
    ended = []
    ready = parts.prober.prepare(slow)
    run = threading.Thread(target=lambda: ended.append(parts.prober.execute(ready)))
    run.start()
    parts.prober.memory.wait_for_run(threading.Event())
    assert waiting(parts.prober.checks).wait(WAIT_S)
    assert run.is_alive()
    run.join()
    assert ended[0].outcome is Outcome.COMPLETED
