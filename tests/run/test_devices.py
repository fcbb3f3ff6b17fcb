"""GPUs as nvidia-smi lists them, and the choice among devices."""

from __future__ import annotations

import os

import pytest

from harness.model import Device
from harness.run.devices import (
    Gpu,
    choose_device,
    find_gpus,
    parse_gpus,
    unavailable,
    visible,
    wait_for_memory,
)

MIB = 1024 * 1024
LISTING = """\
0, NVIDIA A100-SXM4-80GB, 81920, 81038, 550.54.15, GPU-1d1ac1aa-0000-0000-0000-000000000000, 8.0
1, NVIDIA GeForce RTX 3090, 24576, 512, 550.54.15, GPU-2b2bb2bb-0000-0000-0000-000000000000, 8.6
"""
A100, RTX = parse_gpus(LISTING)


def test_a_listing_is_read():
    expected = Gpu(
        index=0,
        name="NVIDIA A100-SXM4-80GB",
        memory=81920 * MIB,
        free=81038 * MIB,
        driver="550.54.15",
        uuid="GPU-1d1ac1aa-0000-0000-0000-000000000000",
        capability="8.0",
    )
    assert expected == A100
    assert RTX.free == 512 * MIB


def test_an_old_driver_tells_no_capability():
    (gpu,) = parse_gpus("0, Tesla T4, 15109, 15000, 450.80.02, GPU-1\n")
    assert (gpu.capability, gpu.driver) == ("", "450.80.02")


def test_what_a_driver_does_not_support_is_left_empty():
    (gpu,) = parse_gpus("0, NVIDIA GB10, [N/A], [N/A], 580.95, GPU-1, [N/A]\n")
    assert (gpu.memory, gpu.free, gpu.capability) == (0, 0, "")


@pytest.mark.parametrize("text", ["", "No devices were found\n", "NVIDIA-SMI has failed, because, of, a, b, c\n"])
def test_a_complaint_lists_no_gpu(text):
    assert parse_gpus(text) == ()


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        (None, (A100, RTX)),
        ("", ()),
        ("-1", ()),
        ("1", (RTX,)),
        ("1,0", (RTX, A100)),
        ("0,7,1", (A100,)),
        ("GPU-2b2b", (RTX,)),
        ("GPU-", ()),
    ],
)
def test_the_environment_hides_gpus(setting, seen):
    assert visible((A100, RTX), setting) == seen


def test_nvidia_smi_is_asked_again_without_what_an_old_driver_lacks(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in *compute_cap*) exit 2;; esac\necho 0, Tesla T4, 15109, 15000, 450.80.02, GPU-1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert [gpu.name for gpu in find_gpus()] == ["Tesla T4"]
    assert find_gpus({"CUDA_VISIBLE_DEVICES": ""}) == ()


def test_no_nvidia_smi_means_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_gpus() == ()


@pytest.mark.parametrize(
    ("asked", "needs", "gpus", "device"),
    [
        ("auto", "cpu", (), Device.CPU),
        ("auto", "cpu", (A100,), Device.CPU),
        ("auto", "any", (), Device.CPU),
        ("auto", "any", (A100,), Device.CUDA),
        ("auto", "cuda", (), Device.EMULATED),
        ("auto", "cuda", (A100,), Device.CUDA),
        ("cpu", "cuda", (A100,), Device.CPU),
        ("cuda", "cpu", (), Device.CUDA),
        ("emulated", "cpu", (A100,), Device.EMULATED),
    ],
)
def test_the_device_is_chosen(asked, needs, gpus, device):
    assert choose_device(asked, needs, gpus)[0] is device


def test_the_sentence_says_what_a_result_is_worth():
    assert "NVIDIA A100-SXM4-80GB, driver 550.54.15" in choose_device("auto", "cuda", (A100,))[1]
    assert "stand-in" in choose_device("auto", "cuda", ())[1]
    assert "although the repro asks for CUDA" in choose_device("cpu", "cuda", ())[1]
    assert "can't show" in choose_device("auto", "cpu", ())[1]


def test_only_cuda_without_a_gpu_is_unavailable():
    assert "no NVIDIA GPU" in str(unavailable(Device.CUDA, ()))
    assert unavailable(Device.CUDA, (A100,)) is None
    assert unavailable(Device.EMULATED, ()) is None


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):  # noqa: D102
        return self.now

    def sleep(self, seconds):
        """Let time pass."""
        self.now += seconds


def test_waiting_for_memory_ends_as_soon_as_a_gpu_has_it():
    clock = Clock()
    listings = iter([(RTX,), (RTX,), (RTX, A100)])
    found = wait_for_memory(1024 * MIB, 10, find=lambda: next(listings), clock=clock, sleep=clock.sleep)
    assert (found, clock.now) == (A100, 2.0)


def test_waiting_for_memory_ends_at_its_limit():
    clock = Clock()
    assert wait_for_memory(1024 * MIB, 2.5, find=lambda: (RTX,), clock=clock, sleep=clock.sleep) is None
    assert clock.now == 2.5
