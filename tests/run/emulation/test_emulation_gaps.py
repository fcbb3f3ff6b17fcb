"""What only a GPU can do is a gap, and nothing else is mistaken for one."""

from __future__ import annotations

import types

import pytest

from harness.run.inside.emulation.kernels import (
    EmulationGap,
    Incomplete,
    close_the_rest,
    gap_class,
    gap_function,
    needs_the_card,
)


@pytest.mark.parametrize(
    ("words", "is_gap"),
    [
        ("Could not run 'x::y' with arguments from the 'CPU' backend. Available for these: [Meta, CUDA, Python]", True),
        ("Could not run 'x::y' with arguments from the 'CUDA' backend.", True),
        ("Could not run 'x::y' with arguments from the 'CPU' backend. Available: [Meta, AutogradCUDA]", False),
        ("not implemented for 'Half'", False),
        ("", False),
    ],
)
def test_an_operator_without_a_kernel_for_the_cpu_is_a_gap(words, is_gap):
    assert needs_the_card(NotImplementedError(words)) is is_gap


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
