"""A gap is recognised by its message, and nothing else is mistaken for one."""

from __future__ import annotations

import types

import pytest

from harness.run.inside.emulation import as_gap
from harness.run.inside.emulation.gaps import EmulationGap, Incomplete, gap, gap_class, gap_function
from harness.run.inside.emulation.kernels import close_the_rest


@pytest.mark.parametrize(
    "words",
    [
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "Torch not compiled with CUDA enabled",
        "0 active drivers ([]). There should only be one.",
        "Could not run 'x::y' with arguments from the 'CPU' backend. Available for these: [Meta, CUDA, Python]",
        "Could not run 'x::y' with arguments from the 'CUDA' backend.",
    ],
)
def test_a_missing_driver_message_is_a_gap(words):
    told = as_gap(RuntimeError(words))
    assert isinstance(told, EmulationGap)
    assert words[:60] in str(told)


@pytest.mark.parametrize(
    "words",
    [
        "Trying to backward through the graph a second time",
        "Could not run 'x::y' with arguments from the 'CPU' backend. Available for these: [Meta, AutogradCUDA]",
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "",
    ],
)
def test_other_messages_are_not_gaps(words):
    assert as_gap(RuntimeError(words)) is None


def test_a_gap_is_found_in_the_cause_of_an_error():
    inner = gap("torch.cuda.graph")
    outer = ValueError("can't start")
    outer.__cause__ = inner
    assert as_gap(outer) is inner


def test_a_handled_gap_is_not_blamed():
    error = ValueError("the bug")
    error.__context__ = gap("torch.cuda.graph")
    assert as_gap(error) is None


def test_a_gap_names_the_call():
    with pytest.raises(EmulationGap, match=r"torch\.cuda\.temperature needs a real GPU"):
        gap_function("torch.cuda.temperature")(0, unit="C")


def test_a_missing_class_can_be_used_in_annotations():
    graph = gap_class("torch.cuda.CUDAGraph")
    assert (graph | None).__args__ == (graph, type(None))
    with pytest.raises(EmulationGap, match="CUDAGraph"):
        graph()


def test_every_unanswered_call_to_the_driver_is_a_gap():
    doors = types.SimpleNamespace(
        _cuda_memorySnapshot=lambda: "driver", _cuda_getDevice=lambda: 0, _cuda_getCompiledVersion=lambda: 12080
    )
    close_the_rest(types.SimpleNamespace(_C=doors), {"_C._cuda_getDevice"})
    with pytest.raises(EmulationGap, match="_cuda_memorySnapshot"):
        doors._cuda_memorySnapshot()
    assert (doors._cuda_getDevice(), doors._cuda_getCompiledVersion()) == (0, 12080)


def test_a_missing_attribute_is_a_gap_but_hasattr_works():
    class Stream(Incomplete):
        pass

    with pytest.raises(EmulationGap, match=r"Stream\.native_handle"):
        Stream().native_handle  # noqa: B018
    assert not hasattr(Stream(), "native_handle")
    assert getattr(Stream(), "native_handle", 7) == 7
