"""Runs with the stand-in for CUDA are forked too: it initialises nothing that a fork would lose."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from emulated import Python

from harness.model import Device, Outcome
from harness.model.repro import Repro
from harness.run.forks import started_zygote
from harness.run.process import ZygoteFailed
from harness.run.runner import Job, Place, run_repro

# As unsloth does: it asks for the card while it is imported.
MODULE = """\
import torch

torch.cuda.init()
CARD, SYNCHRONIZE = torch.cuda.get_device_name(0), torch.cuda.synchronize
"""
STEP = """\
import cards
import torch
from torch.utils.checkpoint import checkpoint

assert torch.cuda.is_available() and cards.CARD == torch.cuda.get_device_name(0)
layer = torch.nn.Linear(64, 64).cuda()
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = checkpoint(layer, torch.ones(64, 64, device="cuda", requires_grad=True), use_reentrant=False).sum()
loss.backward()
assert layer.weight.grad.abs().sum() > 0
assert torch.cuda.synchronize is cards.SYNCHRONIZE  # nothing is replaced twice
"""


def job_of(python: Python, folder: Path, modules: str, device: Device) -> Job:
    repro = Repro(name="step", digest="0", source=STEP, path="step.py", timeout=60.0, search_path=(modules,))
    return Job(
        repro, Place(python.path, folder / "scratch"), folder / "log.gz", device, variables={"OMP_NUM_THREADS": "2"}
    )


def test_a_process_with_the_stand_in_can_be_forked(torch_python: Python, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "cards.py").write_text(MODULE, encoding="utf-8")
    job = job_of(torch_python, tmp_path, str(tmp_path / "modules"), Device.EMULATED)
    with started_zygote(job, ["torch", "cards"]) as started:
        for _ in range(2):
            ran = run_repro(evolve(job, zygote=started))
            assert ran.outcome is Outcome.COMPLETED, (ran.detail, ran.exception)


def test_a_process_that_initialised_cuda_is_not_forked(torch_python: Python, tmp_path: Path) -> None:
    (tmp_path / "cards.py").write_text("import torch\ntorch.cuda.is_initialized = lambda: True\n", encoding="utf-8")
    started = started_zygote(job_of(torch_python, tmp_path, str(tmp_path), Device.CPU), ["cards"])
    with pytest.raises(ZygoteFailed, match="initialised CUDA"), started:
        pass
