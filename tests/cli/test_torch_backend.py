"""`--torch-backend none` switches off what is done without a GPU, and contradictions are refused."""

from __future__ import annotations

import pytest

TOOL = '[signature]\nexception = "ZeroDivisionError"\n'


@pytest.mark.parametrize("variable", ["", "cpu"])
def test_none_means_the_builds_of_the_index(harness, write_repro, house, variable):
    """Also if uv's own variable names a backend, whose index is not available here."""
    house.add("torch", "2.7.0", requires=("nvidia-cublas-cu12==12.6",))
    house.add("nvidia-cublas-cu12", "12.6", files={"nvidia_cublas.py": ""})
    write_repro("torch", tool='device = "cpu"', body="import nvidia_cublas\n")
    own = harness.with_environ(UV_TORCH_BACKEND=variable) if variable else harness
    ended = own("probe", "torch_step", "--torch-backend", "none", "--json")
    assert ended.json["outcome"] == "completed", ended.stderr
    assert ended.json["drift"] == []


def test_a_build_without_cuda_is_refused_for_cuda(harness, write_repro):
    write_repro("brittle")
    ended = harness("probe", "brittle_step", "--torch-backend", "cpu", "--device", "cuda")
    assert ended.code == 2
    assert "--torch-backend cpu installs no CUDA" in ended.stderr
