"""Values that a thread computes during runs."""

from __future__ import annotations

import threading

import pytest

from harness.culprit.background import Background
from harness.probing import Prober

WAIT_S = 30


class Fake:
    """Not a prober that knows when its runs begin."""


def test_a_value_is_computed_before_it_is_requested():
    computed = threading.Event()
    found = Background.begun(Fake(), lambda: computed.set() or 42)
    assert computed.wait(WAIT_S)
    assert found.result() == 42


def test_what_computing_raised_is_raised_with_the_result():
    found = Background.begun(Fake(), lambda: {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        found.result()


def test_computing_waits_for_a_run_or_for_the_request():
    prober = Prober(store=None, resolver=None, builder=None, workspace=None)
    computed = threading.Event()
    found = Background.begun(prober, computed.set)
    assert not computed.wait(0.3)
    with prober.memory.entered():
        assert computed.wait(WAIT_S)
    assert found.result() is None
    assert Background.begun(prober, lambda: 42).result() == 42
