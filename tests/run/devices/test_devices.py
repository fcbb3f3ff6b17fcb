"""GPUs as listed by nvidia-smi, and the choice of a device."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from attrs import evolve

from harness.model import Device, Outcome, Repro
from harness.run import devices
from harness.run.devices import (
    Gpu,
    choose_device,
    find_gpus,
    hidden,
    kind_of,
    of_one_kind,
    outcome_of_text,
    unavailable,
    visible,
)
from harness.run.devices.cuda import parse_gpus
from harness.run.runner import Job, Place, run_repro

MIB = 1024 * 1024
LISTING = """\
0, NVIDIA A100-SXM4-80GB, 81920, 81038, 550.54.15, GPU-1d1ac1aa-0000-0000-0000-000000000000, 8.0
1, NVIDIA GeForce RTX 3090, 24576, 512, 550.54.15, GPU-2b2bb2bb-0000-0000-0000-000000000000, 8.6
"""
A100, RTX = parse_gpus(LISTING)


def test_a_listing_is_parsed():
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


def test_unsupported_fields_are_empty():
    (gpu,) = parse_gpus("0, NVIDIA GB10, [N/A], [N/A], 580.95, GPU-1, [N/A]\n")
    assert (gpu.memory, gpu.free, gpu.capability) == (0, 0, "")


def test_the_reasons_of_a_slow_clock_are_listed():
    reasons = {"0x0000000000000001": (), "0x0000000000000044": ("power cap", "hardware thermal slowdown"), "[N/A]": ()}
    for cell, slowed in reasons.items():
        (gpu,) = parse_gpus(f"0, Tesla T4, 15109, 15000, 550.54, GPU-1, 7.5, {cell}\n")
        assert gpu.slowed == slowed
    assert A100.facts["device_memory_in_use"] == (81920 - 81038) * MIB


def test_a_driver_that_does_not_know_the_clocks_still_lists_gpus(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase $1 in *clocks*) echo 'Field \"clocks\" is not a valid field to query.'; exit 2;; esac\n"
        "echo 0, Tesla T4, 15109, 15000, 550.54, GPU-1, 7.5\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert [gpu.name for gpu in find_gpus()] == ["Tesla T4"]


@pytest.mark.parametrize("text", ["", "No devices were found\n", "NVIDIA-SMI has failed, because, of, a, b, c\n"])
def test_an_error_message_lists_no_gpu(text):
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


def test_nvidia_smi_is_asked(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 0, Tesla T4, 15109, 15000, 550.54, GPU-1, 7.5\n")
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


def test_the_sentence_says_how_far_a_result_applies():
    assert "NVIDIA A100-SXM4-80GB, driver 550.54.15" in choose_device("auto", "cuda", (A100,))[1]
    assert "stand-in" in choose_device("auto", "cuda", ())[1]
    assert "although the repro asks for CUDA" in choose_device("cpu", "cuda", ())[1]
    assert "can't show" in choose_device("auto", "cpu", ())[1]


def test_only_cuda_without_a_gpu_is_unavailable():
    assert "no GPU found" in str(unavailable(Device.CUDA, ()))
    assert unavailable(Device.CUDA, (A100,)) is None
    assert unavailable(Device.EMULATED, ()) is None


T4 = Gpu(0, "Tesla T4", 15 * 1024 * MIB, 0, "550", "GPU-a")


def test_the_most_frequent_gpu_model_is_used_and_the_others_are_reported():
    one, two, other = T4, evolve(T4, index=1, uuid="GPU-b"), evolve(A100, index=2)
    assert of_one_kind((other, one, two)) == (one, two)
    assert of_one_kind((other, one)) == (other,)
    assert of_one_kind(()) == ()
    told = choose_device("cuda", "cuda", (other, one, two))[1]
    assert "2 GPUs: Tesla T4" in told
    assert "another model: GPU 2 (NVIDIA A100-SXM4-80GB)" in told


def test_a_process_sees_one_gpu_by_its_uuid():
    assert kind_of(RTX).show(RTX)["CUDA_VISIBLE_DEVICES"] == "GPU-2b2bb2bb-0000-0000-0000-000000000000"
    assert kind_of(RTX).show(evolve(RTX, uuid="")) == {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert A100.facts["gpu"] == 0
    assert "capability" not in T4.facts


VENDOR = """
from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Gpu, Texts

KIND = DeviceKind(
    name="intel",
    device=Device.CUDA,
    worth="the results are those of oneAPI",
    tools=("xpu-smi",),
    find=lambda _: (Gpu(0, "Arc B580", 12 << 30, 12 << 30, "1.0", kind="intel"),),
    show=lambda gpu: {"ZE_AFFINITY_MASK": gpu.address, "HARNESS_DEVICE": "xpu"},
    hide={"ZE_AFFINITY_MASK": "-1"},
    texts=(Texts(Outcome.OUT_OF_MEMORY, "XPU out of memory", anywhere=True),),
)
"""


def test_another_vendor_is_one_file(tmp_path, monkeypatch):
    """Also one whose GPUs have a name of their own in PyTorch, which its repros read from HARNESS_DEVICE."""
    (tmp_path / "vendor_of_this_test.py").write_text(VENDOR)
    monkeypatch.setattr(devices, "__path__", [*devices.__path__, str(tmp_path)])
    devices.kinds.cache_clear()
    try:
        (gpu,) = (gpu for gpu in find_gpus() if gpu.kind == "intel")
        device, sentence = choose_device("auto", "cuda", (gpu,))
        source = "import os; print(os.environ['HARNESS_DEVICE'])"
        ran = run_repro(
            Job(
                Repro(name="probe", digest="", source=source),
                Place(Path(sys.executable), tmp_path / "scratch"),
                tmp_path / "log.gz",
                device,
                variables=kind_of(gpu).show(gpu),
            )
        )
        assert sentence == "Runs on GPU: Arc B580, driver 1.0: the results are those of oneAPI"
        assert ran.tail == "xpu\n"
        assert hidden()["ZE_AFFINITY_MASK"] == "-1"
        assert outcome_of_text(["XPU out of memory"], device) == (Outcome.OUT_OF_MEMORY, "XPU out of memory")
        assert "xpu-smi" in (unavailable(device, ()) or "")
        assert gpu.lock_name == "gpu-intel-0"
    finally:
        devices.kinds.cache_clear()
        sys.modules.pop("harness.run.devices.vendor_of_this_test")
