"""Which workers match this machine, and which GPU model is used, decided from their descriptions."""

from __future__ import annotations

import pytest
from attrs import evolve

from harness.model import Device
from harness.probing.cluster.prober import (
    MachineKind,
    Member,
    gpu_of,
    kind_of,
    left_out_because,
    no_gpu_because,
)
from harness.run.devices import Gpu

HERE = MachineKind("1.0 (abc)", "linux-x86_64", "3.11.7", "cpython-311", ("manylinux_2_36_x86_64", "linux_x86_64"))


def gpu(name):
    return Gpu(0, name, 80, 80, "550")


def member(*names, threads=1, declared=None, kind=HERE):
    return Member(kind, threads, len(names) if declared is None else declared, tuple(map(gpu, names)))


def test_a_matching_worker_is_used():
    assert left_out_because(member(), HERE) is None


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
    assert told in left_out_because(member(kind=evolve(HERE, **other)), HERE)


def test_newer_system_libraries_are_accepted():
    newer = evolve(HERE, tags=("manylinux_2_39_x86_64", *HERE.tags))
    assert left_out_because(member(kind=newer), HERE) is None


@pytest.mark.parametrize(
    ("its", "told"),
    [
        (member("A100"), None),
        (member("A100", "A100"), None),
        (member("A100", declared=0), "declares no GPU"),
        (member("A100", declared=2), "declares gpu=2 but sees 1"),
    ],
)
def test_only_declared_gpus_count(its, told):
    why = no_gpu_because(its)
    assert why is None if told is None else told in why


def test_probes_run_on_one_model_of_gpu():
    assert gpu_of([member("T4"), member("A100", declared=0), member("H100")]).name == "H100"
    assert gpu_of([member(), member("A100", declared=0)]) is None


def test_a_worker_has_one_lane_per_thread_or_declared_gpu():
    its = member("A100", "A100", threads=4)
    assert (its.slots(Device.CPU), its.slots(Device.EMULATED), its.slots(Device.CUDA)) == (4, 4, 2)


def test_this_machine_matches_itself(interpreter):
    kind = kind_of(interpreter)
    assert left_out_because(member(kind=kind), kind) is None
    assert (kind.python, kind.platform) == (interpreter.version, interpreter.platform)
