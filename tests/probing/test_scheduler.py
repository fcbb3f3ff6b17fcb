"""Calls start by priority, as soon as what they need is free."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import Future, wait
from contextlib import closing
from functools import partial

import pytest
from fake_prober import WAIT_S
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.probing.lanes import Lanes, Needs, Priority
from harness.run.process import Cancelled, pause


def test_lanes_run_side_by_side_and_close():
    lanes = Lanes(2)
    both = threading.Barrier(2, timeout=WAIT_S)
    futures: list[Future[int]] = [lanes.submit(both.wait) for _ in range(2)]
    assert sorted(future.result() for future in futures) == [0, 1]
    lanes.close()
    with pytest.raises(RuntimeError):
        lanes.submit(both.wait)


def test_waiting_calls_start_by_priority():
    lanes, go, started = Lanes(1), threading.Event(), []
    first = lanes.submit(partial(go.wait, WAIT_S))
    order = [Priority.AHEAD, Priority.PROOF, Priority.ASKED, Priority.PROOF, Priority.ASKED]
    calls = [lanes.submit(partial(started.append, (why, i)), why) for i, why in enumerate(order)]
    go.set()
    for call in [first, *calls]:
        call.result(WAIT_S)
    assert started == sorted(started)
    lanes.close()


def test_a_call_that_waits_can_be_cancelled_and_its_error_is_raised():
    lanes, go = Lanes(1), threading.Event()
    lanes.submit(partial(go.wait, WAIT_S))
    cancelled, failing = lanes.submit(partial(int, "1")), lanes.submit(partial(int, "x"))
    assert cancelled.cancel()
    go.set()
    with pytest.raises(ValueError, match="invalid literal"):
        failing.result(WAIT_S)
    go.clear()
    begun = threading.Event()
    running, left = lanes.submit(lambda: begun.set() or go.wait(WAIT_S)), lanes.submit(partial(int, "1"))
    assert begun.wait(WAIT_S)
    left.add_done_callback(lambda _: go.set())
    lanes.close()
    assert running.result()
    assert left.cancelled()


def test_a_call_that_was_stopped_raises_where_it_waits():
    with closing(Lanes(1)) as lanes:
        begun = threading.Event()
        running, left = lanes.submit(lambda: begun.set() or pause(WAIT_S)), lanes.submit(partial(int, "1"))
        assert begun.wait(WAIT_S)
        running.stop()
        with pytest.raises(Cancelled):
            running.result(WAIT_S)
        assert left.result(WAIT_S) == 1
        lanes.submit(pause).result(WAIT_S)  # no other call is stopped by that


def test_what_is_prepared_needs_no_lane_and_two_are_prepared_at_a_time():
    lanes, go, three = Lanes(1), threading.Event(), threading.Barrier(3, timeout=WAIT_S)
    lanes.submit(partial(go.wait, WAIT_S))
    prepared = [lanes.submit(three.wait, needs=Needs.BUILDER) for _ in range(2)]
    third = lanes.submit(partial(int, "1"), needs=Needs.BUILDER)
    three.wait()
    assert third.result(WAIT_S) == 1
    for task in prepared:
        task.result(WAIT_S)
    go.set()
    lanes.close()


def test_a_lane_is_free_if_no_call_occupies_it_or_waits_for_it():
    go, wanted = threading.Event(), (Needs.LANE, Needs.BUILDER, Needs.LANE, Needs.LANE, Needs.LANE)
    with closing(Lanes(3)) as lanes:
        free = [lanes.free]
        for needs in wanted:
            lanes.submit(partial(go.wait, WAIT_S), needs=needs)
            free.append(lanes.free)
        go.set()
    assert free == [3, 2, 2, 1, 0, 0]
    assert lanes.free == 3


PRIORITIES, NEEDS = st.sampled_from(list(Priority)), st.sampled_from(list(Needs))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.lists(st.tuples(PRIORITIES, NEEDS, st.booleans()), max_size=20))
def test_all_calls_end_and_no_need_is_exceeded(count, calls):
    """Random priorities and needs, some of them stopped: nothing waits for ever, and nothing has less than it needs."""
    running, seen, lock = Counter(), [], threading.Lock()

    def work(needs):
        with lock:
            running[needs] += 1
            seen.append(running.copy())
        time.sleep(0.001)
        with lock:
            running[needs] -= 1

    with closing(Lanes(count)) as lanes:
        tasks = [lanes.submit(partial(work, needs), why, needs) for why, needs, _ in calls]
        for task, (_, _, is_stopped) in zip(tasks, calls, strict=True):
            if is_stopped:
                task.stop()
        assert not wait(tasks, WAIT_S).not_done
    for at_once in seen:
        assert at_once[Needs.LANE] <= count
        assert at_once[Needs.BUILDER] <= 2
