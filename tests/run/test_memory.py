"""Runs that go on at once: a second one starts only where the memory of both is free."""

from __future__ import annotations

import threading

import pytest

from harness.run.memory import MemoryGate
from harness.run.process import Cancelled

GIB = 2**30


def starts_beside(gate):
    """Whether a second run starts while one goes on."""
    entered = threading.Event()

    def second():
        with gate.entered():
            entered.set()

    with gate.entered():
        thread = threading.Thread(target=second)
        thread.start()
        beside = entered.wait(0.5)
    thread.join(10)
    assert entered.is_set()
    return beside


def test_a_single_run_starts_whatever_is_free():
    with MemoryGate(available=lambda: 0).entered():
        pass


def test_runs_of_unknown_size_need_room_for_two_of_four_gib():
    assert starts_beside(MemoryGate(available=lambda: 8 * GIB))
    assert not starts_beside(MemoryGate(available=lambda: 7 * GIB))


def test_the_largest_run_so_far_decides():
    gate = MemoryGate(available=lambda: 8 * GIB)
    gate.note(5 * GIB)
    gate.note(GIB)
    assert not starts_beside(gate)
    small = MemoryGate(available=lambda: 2 * GIB)
    small.note(GIB)
    assert starts_beside(small)


def test_a_cancelled_run_does_not_wait():
    gate, cancel = MemoryGate(available=lambda: 0), threading.Event()
    cancel.set()
    with gate.entered(), pytest.raises(Cancelled), gate.entered(cancel):
        pass


def test_work_waits_for_a_run_or_for_who_needs_it():
    gate, asked = MemoryGate(), threading.Event()
    done = threading.Event()
    thread = threading.Thread(target=lambda: (gate.wait_for_run(asked), done.set()))
    thread.start()
    assert not done.wait(0.3)
    with gate.entered():
        assert done.wait(10)
    asked.set()
    gate.wait_for_run(asked)
    thread.join(10)
