"""`harness bundle --torch-backend cpu`: PyTorch's builds come from PyTorch's own server, the rest from the index."""

from __future__ import annotations

import json
import shutil

import pytest
from carried import run_there
from pytorch_server import pytorch_server
from support import SIGNED
from wheelhouse import Wheel, Wheelhouse

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
BODY = """
import helper, torch
from importlib.metadata import version

if torch.cuda is not None or version("torch") != "2.7.0+cpu":
    raise RuntimeError("the step is broken")
"""


def test_the_build_for_cpus_is_packed_and_runs_without_any_index(harness, write_repro, tmp_path):
    main = Wheelhouse(tmp_path / "main")
    main.add("helper", "1.0", files={"helper.py": ""})
    main.add("nvidia-cublas-cu12", "12.6", files={"cublas.bin": "x"})
    needs = ("helper", "nvidia-cublas-cu12==12.6")
    main.add("torch", "2.7.0", files={"torch/__init__.py": "cuda = '12.6'\n"}, requires=needs)
    Wheel("torch", "2.7.0+cpu", {"torch/__init__.py": "cuda = None\n"}, ("helper",)).write(tmp_path / "wheels")
    write_repro("torch", tool=f'device = "any"\n{SIGNED}', body=BODY)
    asked: list[str] = []
    with pytorch_server(tmp_path / "server", tmp_path / "wheels", asked) as leads:
        own = {"UV_CACHE_DIR": str(tmp_path / "uv"), "HARNESS_CACHE_DIR": str(tmp_path / "cache")}
        for_requests = {"REQUESTS_CA_BUNDLE": leads["SSL_CERT_FILE"], "https_proxy": leads["HTTPS_PROXY"]}
        there = harness.with_environ(**main.environ, **leads, **for_requests, **own)
        words = ("bundle", "torch_step", "--over", "torch==2.7.0", "--torch-backend", "cpu", "--output", "carry")
        packed = there(*words)
    assert packed.code == 0, packed.stderr
    carry = harness.folder / "carry"
    wheels = sorted(path.name for path in (carry / "wheels").iterdir())
    assert wheels == ["helper-1.0-py3-none-any.whl", "torch-2.7.0+cpu-py3-none-any.whl"]
    assert "/whl/cpu/torch-2.7.0%2Bcpu-py3-none-any.whl" in asked
    (told,) = (json.loads(path.read_text()) for path in carry.glob("*/job.json"))
    assert [(pin["name"], pin["version"]) for pin in told["probe"]["lock"]["pins"]] == [
        ("helper", "1.0"),
        ("torch", "2.7.0+cpu"),
    ]
    ended = run_there(carry)
    assert ended.code == 0, ended.stdout + ended.stderr
    absorbed = harness("absorb", carry)
    assert (absorbed.code, "\ngood ran to its end" in absorbed.stdout) == (0, True), absorbed
