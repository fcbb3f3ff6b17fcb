"""uv's own `--torch-backend cpu`, as it is, against a server that looks like PyTorch's: builds without a date."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime

import pytest
from attrs import evolve
from pytorch_server import pytorch_server
from support import make_parts
from wheelhouse import Wheel, Wheelhouse

from harness.environment import PipSettings
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("openssl") is None, reason="openssl makes the certificates; wheels of Linux"
)
TAG = "py3-none-manylinux_2_28_x86_64"
SEEN = """\
# /// script
# dependencies = ["torch"]
# ///
import torch
from importlib.metadata import version
assert torch.cuda is None, torch.cuda
assert version("torch") == "2.7.0+cpu"
"""


@pytest.fixture
def parts(tmp_path, interpreter, monkeypatch):
    """Parts whose uv finds a main index with dates and, under its own address, PyTorch's builds for CPUs."""
    main = Wheelhouse(tmp_path / "main")
    main.add("nvidia-cublas-cu12", "12.6", files={"cublas.bin": "x"})
    for version, month in {"2.6.0": 1, "2.7.0": 3, "2.8.0": 5}.items():
        more = {"requires": ("nvidia-cublas-cu12==12.6",), "uploaded": f"2024-0{month}-01T12:00:00Z", "tag": TAG}
        main.add("torch", version, files={"torch/__init__.py": "cuda = '12.6'\n"}, **more)
    for version in ("2.6.0+cpu", "2.6.0+cpu.cxx11.abi", "2.7.0+cpu", "2.9.0+cpu"):
        Wheel("torch", version, {"torch/__init__.py": "cuda = None\n"}, tag=TAG).write(tmp_path / "wheels")
    asked: list[str] = []
    with pytorch_server(tmp_path / "server", tmp_path / "wheels", asked) as leads:
        for name, value in leads.items():
            monkeypatch.setenv(name, value)
        made = make_parts(tmp_path, PipSettings(index_url=main.url), tmp_path / "uv", interpreter)
        yield made, asked


def ran(made, source, **more):
    prober = evolve(made.prober, builder=evolve(made.builder, has_gpu_libraries=False))
    combination = Combination(made.resolver.interpreter.version, ("torch",), **more)
    return prober.execute(prober.prepare(Probe(parse_repro(source, name="x"), combination)))


def test_the_release_of_the_day_comes_from_pytorchs_server(parts):
    made, asked = parts
    seen = ran(made, SEEN, as_of=datetime(2024, 3, 15, tzinfo=UTC))
    assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert (seen.lock.version_of("torch"), seen.installed[0].version) == ("2.7.0", "2.7.0+cpu")
    wheels = [path for path in asked if path.endswith(".whl")]
    assert set(wheels) == {f"/whl/cpu/torch-2.7.0%2Bcpu-{TAG}.whl"}
    earlier = ran(made, SEEN.replace("2.7.0+cpu", "2.6.0+cpu.cxx11.abi"), as_of=datetime(2024, 1, 15, tzinfo=UTC))
    assert earlier.outcome is Outcome.COMPLETED, earlier.exception or earlier.detail


def test_a_release_that_pytorchs_server_lacks_is_that_of_the_main_index(parts):
    made, _ = parts
    seen = ran(made, "# /// script\n# dependencies = ['torch']\n# ///\nimport torch\nassert torch.cuda == '12.6'\n")
    assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert (seen.lock.version_of("torch"), seen.installed) == ("2.8.0", ())


def test_a_backend_that_was_named_is_in_the_lock_itself(parts, monkeypatch):
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    made, _ = parts
    seen = ran(made, SEEN, as_of=datetime(2024, 3, 15, tzinfo=UTC))
    assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert (seen.lock.version_of("torch"), seen.installed) == ("2.7.0+cpu", ())
