"""A run of the tests in question is stopped soon where it hangs."""

from __future__ import annotations

import pytest

from harness.bisection.both_ends import soon_stopped
from harness.model.repro import command_repro


@pytest.mark.parametrize(("seconds", "limit"), [(0.5, 60), (6, 60), (7, 120), (24, 240), (200, 300)])
def test_the_limit_is_much_longer_than_a_run_that_works(seconds, limit):
    assert soon_stopped(command_repro("pytest", timeout=300), seconds).timeout == limit


def test_a_limit_of_the_user_is_never_raised():
    repro = command_repro("pytest", timeout=20)
    assert soon_stopped(repro, 5) == repro


def test_a_run_with_another_limit_is_another_run():
    repro = command_repro("pytest", timeout=300)
    assert soon_stopped(repro, 1).digest != repro.digest
    assert soon_stopped(repro, 1).digest == soon_stopped(repro, 2).digest
