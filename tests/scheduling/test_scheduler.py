"""Lanes, and probes that run beside a search, on a lane that it leaves free."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from contextlib import closing
from functools import partial

import pytest
from fake_prober import WAIT_S, FakeProber

from harness.errors import NoNetwork
from harness.scheduling.scheduler import Lanes, Priority, SpareLane, held_for
from harness.search import Trial


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
    order = [Priority.AHEAD, Priority.REPETITION, Priority.ASKED, Priority.PROOF, Priority.ASKED]
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
    threading.Timer(0.2, go.set).start()
    lanes.close()
    assert running.result()
    assert left.cancelled()


def spare_lane(prober, positions, *, lanes=2):
    return SpareLane(prober, Lanes(lanes), deque(Trial(position) for position in positions))


def test_probes_run_in_order_and_known_ones_do_not():
    prober = FakeProber("GGBB", keys={0: "0-0", 2: "2-0"}, known=frozenset({1}), saw={2: threading.Event()})
    with closing(spare_lane(prober, [0, 1, 2])) as spare:
        spare.begin()
        assert prober.saw[2].wait(WAIT_S)
        spare.wait()
    assert prober.executed == [0, 2]
    assert spare.ran == {"0-0", "2-0"}


def test_one_lane_is_left_to_the_search():
    prober = FakeProber("GG")
    spare = spare_lane(prober, [0, 1], lanes=1)
    spare.begin()
    spare.wait()
    assert prober.prepared == []


def test_a_run_that_nobody_waited_for_is_stopped():
    prober = FakeProber("GG", stuck=frozenset({0}), saw={0: threading.Event()})
    with closing(spare_lane(prober, [0, 1])) as spare:
        spare.begin()
        assert prober.saw[0].wait(WAIT_S)
    assert prober.called_off in ([0], [])  # stopped while it ran, or before it began
    assert spare.ran == set()
    assert prober.prepared == [0]


def test_no_run_starts_while_the_search_needs_all_lanes():
    keys, go = {0: "0-0", 1: "1-0"}, threading.Event()
    prober = FakeProber("GG", keys=keys, wait_for={0: go}, saw={0: threading.Event(), 1: threading.Event()})
    with closing(spare_lane(prober, [0, 1])) as spare:
        spare.begin()
        assert prober.saw[0].wait(WAIT_S)
        with spare.held():
            go.set()
            with spare.held():
                pass
            assert not prober.saw[1].wait(0.3)
            spare.wait()
            spare.begin()
            assert spare.ran == {"0-0"}
        assert prober.saw[1].wait(WAIT_S)
        spare.wait()
    assert prober.executed == [0, 1]
    assert prober.called_off == []


def test_the_last_run_can_be_waited_for():
    prober = FakeProber("GG", keys={0: "0-0"}, wait_for={0: threading.Event()}, saw={0: threading.Event()})
    with closing(spare_lane(prober, [0, 1])) as spare:
        spare.begin()
        assert prober.saw[0].wait(WAIT_S)
        threading.Timer(0.2, prober.wait_for[0].set).start()
        spare.finish()
        assert spare.ran == {"0-0"}
    assert prober.prepared == [0]


@pytest.mark.parametrize(("runs", "is_held"), [(1, False), (2, False), (3, True), (4, True)])
def test_lanes_are_held_if_the_search_needs_all_of_them(runs, is_held):
    with closing(spare_lane(FakeProber("G", keys={0: "0-0"}), [0], lanes=3)) as spare:
        with held_for(spare, runs):
            spare.begin()
            spare.wait()
            assert spare.ran == (set() if is_held else {"0-0"})
        spare.wait()
        assert spare.ran == {"0-0"}
    with held_for(None, runs):
        pass


def test_an_error_of_the_search_stops_the_run():
    prober = FakeProber("GG", stuck=frozenset({0}), saw={0: threading.Event()})

    def search(spare):
        with closing(spare):
            spare.begin()
            assert prober.saw[0].wait(WAIT_S)
            raise KeyboardInterrupt

    spare = spare_lane(prober, [0, 1])
    with pytest.raises(KeyboardInterrupt):
        search(spare)
    assert prober.called_off in ([0], [])  # stopped while it ran, or before it began
    assert spare.ran == set()


def test_what_a_probe_raises_is_left_to_the_search_that_needs_it():
    prober = FakeProber("GG", broken={0: NoNetwork("no network")}, saw={1: threading.Event()})
    with closing(spare_lane(prober, [0, 1])) as spare:
        spare.begin()
        assert prober.saw[1].wait(WAIT_S)
        spare.wait()
    prober = FakeProber("GG", broken={0: RuntimeError("a fault")}, saw={0: threading.Event()})

    def search(spare):
        with closing(spare):
            spare.begin()
            assert prober.saw[0].wait(WAIT_S)

    with pytest.raises(RuntimeError, match="a fault"):
        search(spare_lane(prober, [0, 1]))
