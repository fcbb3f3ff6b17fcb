"""Which machines match this one, decided from their descriptions."""

from __future__ import annotations

import pytest
from attrs import evolve

from harness.model import Device
from harness.probing.executors import left_out_because
from harness.probing.job import MachineKind
from harness.probing.node import Machine, kind_of, look_around
from harness.run.devices import Gpu

HERE = MachineKind("1.0 (abc)", "linux-x86_64", "3.11.7", "cpython-311", ("manylinux_2_36_x86_64", "linux_x86_64"))


def test_a_matching_worker_is_used():
    assert left_out_because(HERE, HERE) is None


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"harness": "0.9 (xyz)"}, "harness 0.9"),
        ({"platform": "linux-aarch64"}, "linux-aarch64"),
        ({"python": "3.12.1"}, "no Python 3.11.7"),
        ({"python": "3.11.9"}, "no Python 3.11.7"),
        ({"cache_tag": "pypy311"}, "no Python 3.11.7"),
        ({"tags": ("linux_x86_64",)}, "wheels up to linux_x86_64"),
    ],
)
def test_a_differing_worker_is_left_out_with_a_reason(other, told):
    assert told in left_out_because(evolve(HERE, **other), HERE)


def test_newer_system_libraries_are_accepted():
    newer = evolve(HERE, tags=("manylinux_2_39_x86_64", *HERE.tags))
    assert left_out_because(newer, HERE) is None


def test_a_machine_has_one_lane_per_thread_or_gpu():
    its = Machine(HERE, (Gpu(0, "A100", 80, 80, "550"),), slots=4, gpu_slots=2)
    assert [its.slots_for(device) for device in (Device.CPU, Device.EMULATED, Device.CUDA)] == [4, 4, 2]


def test_this_machine_matches_itself(interpreter):
    kind = kind_of(interpreter)
    assert look_around(interpreter.version, interpreter.cache_tag).kind == kind
    assert left_out_because(kind, kind) is None
