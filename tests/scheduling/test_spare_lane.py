"""Probes that run beside a search, on a lane that it leaves free."""

from __future__ import annotations

import threading

import pytest
from fake_prober import WAIT_S, FakeProber

from harness.errors import NoNetwork
from harness.scheduling.lanes import LocalLanes
from harness.scheduling.spare_lane import RanBeside, SpareLane
from harness.search import Trial


def spare_lane(prober, positions, *, lanes=2):
    return SpareLane(prober, LocalLanes(lanes), [Trial(position) for position in positions])


def test_probes_run_in_order_and_known_ones_do_not():
    prober = FakeProber("GGBB", known=frozenset({1}), saw={2: threading.Event()})
    spare = spare_lane(prober, [0, 1, 2])
    with spare.used():
        assert prober.saw[2].wait(WAIT_S)
    assert prober.executed in ([0], [0, 2])
    assert spare.ran == {f"{position}-0" for position in prober.executed}


def test_one_lane_is_left_to_the_search():
    prober = FakeProber("GG")
    spare = spare_lane(prober, [0, 1], lanes=1)
    with spare.used():
        pass
    assert prober.prepared == []


def test_no_run_starts_after_the_search_and_the_last_one_ends():
    prober = FakeProber("GG", wait_for={0: threading.Event()}, saw={0: threading.Event()})
    spare = spare_lane(prober, [0, 1])
    with spare.used():
        assert prober.saw[0].wait(WAIT_S)
        threading.Timer(0.2, prober.wait_for[0].set).start()
    assert prober.executed == [0]
    assert spare.ran == {"0-0"}


def test_probes_run_beside_one_search_only():
    prober = FakeProber("GG", saw={0: threading.Event(), 1: threading.Event()})
    spare = spare_lane(prober, [0])
    with spare.used():
        assert prober.saw[0].wait(WAIT_S)
    with spare.used():
        pass
    assert prober.prepared == [0]


def test_an_error_of_the_search_stops_the_run():
    prober = FakeProber("GG", stuck=frozenset({0}), saw={0: threading.Event()})

    def search(spare):
        with spare.used():
            assert prober.saw[0].wait(WAIT_S)
            raise KeyboardInterrupt

    spare = spare_lane(prober, [0, 1])
    with pytest.raises(KeyboardInterrupt):
        search(spare)
    assert prober.called_off in ([0], [])  # stopped while it ran, or before it began
    assert spare.ran == set()


def test_an_error_of_a_probe_is_raised_when_the_search_has_ended():
    prober = FakeProber("GG", broken={0: NoNetwork("no network")}, saw={0: threading.Event()})

    def search(spare):
        with spare.used():
            assert prober.saw[0].wait(WAIT_S)

    with pytest.raises(NoNetwork):
        search(spare_lane(prober, [0, 1]))


def test_a_run_of_this_session_is_not_called_stored():
    prober = RanBeside(FakeProber("GG", keys={0: "here", 1: "stored"}, known=frozenset({0, 1})), frozenset({"here"}))
    assert not prober.prepare(Trial(0)).cached
    assert prober.prepare(Trial(1)).cached
