"""A budget counts wall time on a clock, and GPU time from the runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model import Device, Observation, Outcome
from harness.watch.tonight import Budget


def run(device: Device, seconds: float, outcome: Outcome = Outcome.COMPLETED) -> Observation:
    return Observation("k", outcome, "step", "d", device, duration_s=seconds)


def test_every_device_spends_wall_time():
    now = [100.0]
    budget = Budget(lambda: now[0], minutes=1)
    assert not budget.is_spent(Device.CPU)
    now[0] += 30
    assert budget.share(Device.CPU) == 0.5
    now[0] += 30
    assert budget.is_spent(Device.CPU)
    assert budget.is_spent(Device.CUDA)


def test_only_gpu_runs_spend_gpu_time_and_are_stopped_by_it():
    budget = Budget(lambda: 0.0, gpu_minutes=1)
    budget.used(run(Device.CPU, 1000))
    budget.used(run(Device.EMULATED, 1000))
    assert not budget.is_spent(Device.CUDA)
    budget.used(run(Device.CUDA, 60))
    assert budget.is_spent(Device.CUDA)
    assert not budget.is_spent(Device.CPU)


def test_a_cell_that_never_ran_costs_nothing():
    budget = Budget(lambda: 0.0)
    budget.used(run(Device.CPU, 0, Outcome.UNRESOLVABLE))
    budget.used(run(Device.CPU, 1, Outcome.RAISED))
    assert budget.ran == 1


@given(st.floats(0, 1e9))
def test_no_limit_is_never_spent_and_a_limit_of_zero_always_is(seconds):
    times = iter([0.0, *[seconds] * 9])
    assert not Budget(lambda: next(times)).is_spent(Device.CUDA)
    assert Budget(lambda: 0.0, minutes=0).is_spent(Device.CPU)
