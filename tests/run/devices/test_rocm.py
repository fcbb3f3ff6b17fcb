"""AMD GPUs as listed by amd-smi; these tests have never run on one."""

from __future__ import annotations

import json
import os

import pytest

from harness.model import Device, Outcome
from harness.run.devices import choose_device, find_gpus, hidden, kind_of, kinds, outcome_of_text
from harness.run.devices.rocm import parse_amd_smi

MIB = 1024 * 1024
STATIC = [
    {
        "gpu": 0,
        "asic": {
            "market_name": "AMD Instinct MI300X",
            "asic_serial": "0x74A1",
            "target_graphics_version": "gfx942",
        },
        "driver": {"name": "amdgpu", "version": "6.10.5"},
        "vram": {"size": {"value": 196592, "unit": "MB"}},
    }
]
RADEON = {"gpu": 1, "asic": {"market_name": "Radeon RX 7900 XTX", "asic_serial": "N/A"}}
METRIC = [{"gpu": 0, "mem_usage": {"used_vram": {"value": 592, "unit": "MB"}}}]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Write programs that print JSON depending on their first arguments; PATH has nothing else."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def make(name, **answers):
        cases = "".join(f"{word}) cat <<'.'\n{json.dumps(answer)}\n.\n;;\n" for word, answer in answers.items())
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}*) exit 2;;\nesac\n')
        program.chmod(0o755)

    return make


@pytest.mark.parametrize("static", [STATIC, {"gpu_data": STATIC}])
def test_a_listing_of_amd_smi_is_parsed(static):
    (gpu,) = parse_amd_smi(static, METRIC)
    assert (gpu.name, gpu.memory, gpu.free) == ("AMD Instinct MI300X", 196592 * MIB, 196000 * MIB)
    assert (gpu.capability, gpu.driver, gpu.kind) == ("gfx942", "6.10.5", "rocm")


@pytest.mark.parametrize("answer", [None, [], {}, "no", {"card0": "broken"}, [{"gpu": "x"}], {"gpu_data": None}])
def test_output_that_is_not_a_listing_has_no_gpus(answer):
    assert parse_amd_smi(answer, answer) == ()


def test_amd_smi_is_asked(tools):
    tools("amd-smi", static=[*STATIC, RADEON], metric=METRIC)
    assert [gpu.name for gpu in find_gpus()] == ["AMD Instinct MI300X", "Radeon RX 7900 XTX"]
    assert [gpu.index for gpu in find_gpus({"HIP_VISIBLE_DEVICES": "1"})] == [1]
    assert find_gpus({"HIP_VISIBLE_DEVICES": "-1"}) == ()
    assert [gpu.index for gpu in find_gpus({"ROCR_VISIBLE_DEVICES": "GPU-74a1"})] == [0]


def test_a_cuda_repro_runs_on_rocm_with_one_gpu():
    gpus = parse_amd_smi([*STATIC, RADEON])
    device, why = choose_device("auto", "cuda", gpus)
    assert device is Device.CUDA
    assert "AMD Instinct MI300X, driver 6.10.5" in why
    assert "ROCm" in why
    assert "HIP_VISIBLE_DEVICES" in why  # of another kind: the Radeon
    assert kind_of(gpus[1]).show(gpus[1]) == {"HIP_VISIBLE_DEVICES": "1"}


def test_leases_of_two_vendors_are_independent():
    (amd,) = parse_amd_smi([RADEON])
    assert amd.lock_name == "gpu-rocm-1"


def test_every_gpu_is_hidden_on_the_cpu():
    assert set(hidden()) == {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}


@pytest.mark.parametrize(
    ("text", "device", "outcome"),
    [
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB", Device.CUDA, Outcome.OUT_OF_MEMORY),
        ("RuntimeError: HIP out of memory", Device.CPU, Outcome.OUT_OF_MEMORY),
        ("RuntimeError: No HIP GPUs are available", Device.CUDA, Outcome.DEVICE_FAILED),
        ("RuntimeError: HIP error: invalid device function", Device.CUDA, Outcome.DEVICE_FAILED),
        ("RuntimeError: No HIP GPUs are available", Device.CPU, None),
    ],
)
def test_failures_on_rocm_have_an_outcome(text, device, outcome):
    found = outcome_of_text([text], device)
    assert (found[0] if found else None) is outcome


def test_every_module_in_the_folder_is_registered():
    assert [kind.name for kind in kinds()] == ["cpu", "emulated", "cuda", "rocm"]
