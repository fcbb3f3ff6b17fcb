"""The stand-in in a real torch: when it is installed, which card it emulates, and a training step."""

from __future__ import annotations

import pytest

CARD = """
install(capability={capability!r})
import torch
told = [torch.cuda.get_device_name(), list(torch.cuda.get_device_capability()),
        torch.cuda.is_bf16_supported(including_emulation=False), torch.cuda.get_device_properties("cuda").name]
"""


@pytest.mark.parametrize(
    ("capability", "name", "bfloat16"),
    [("7.5", "Tesla T4", False), ("9.0", "NVIDIA H200", True)],
)
def test_the_card_matches_the_capability(torch_python, tmp_path, capability, name, bfloat16):
    told = torch_python.tell(CARD.format(capability=capability), tmp_path)
    assert told == [name, [int(part) for part in capability.split(".")], bfloat16, name]


def test_torch_is_not_imported_before_the_repro_imports_it(torch_python, tmp_path):
    script = """
install()
told = ["torch" in sys.modules]
import torch
told += [torch.cuda.is_available(), type(torch.__spec__.loader).__name__]
"""
    assert torch_python.tell(script, tmp_path) == [False, True, "SourceFileLoader"]


def test_it_works_with_torch_already_imported(torch_python, tmp_path):
    assert torch_python.tell("import torch\ninstall()\ntold = torch.cuda.is_available()", tmp_path) is True


def test_a_wrong_capability_is_refused(torch_python, tmp_path):
    done = torch_python.run("install(capability='1.0')", tmp_path)
    assert "ValueError: no card with compute capability '1.0'" in done.stderr


STEP = """
install(capability="7.5")
import threading
import torch
device = torch.device("cuda")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)).cuda()
model = model.to("cuda:0").half().float().to(device)
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=False)
before = [p.detach().clone() for p in model.parameters()]
for x, y in loader:
    with torch.autocast("cuda", torch.float16):
        given = x.to(device, non_blocking=True)
        hidden = torch.utils.checkpoint.checkpoint(model, given, use_reentrant=False)
        loss = torch.nn.functional.mse_loss(hidden.float(), y.cuda(non_blocking=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
moved = []
def other():
    moved.append(torch.ones(1).to("cuda").device.type + torch.zeros(1, device="cuda").device.type)
thread = threading.Thread(target=other); thread.start(); thread.join()
@torch.jit.script
def scripted(x: torch.Tensor): return x + torch.zeros([2], device=x.device)
told = {
    "learned": any(not torch.equal(a, b) for a, b in zip(before, model.parameters())),
    "finite": bool(torch.isfinite(loss)),
    "scaled": scaler.is_enabled() and scaler.get_scale() > 1,
    "thread": moved,
    "scripted": scripted(torch.ones(2)).tolist(),
    "places": sorted({p.device.type for p in model.parameters()}),
}
"""


def test_a_training_step_with_autocast_scaler_and_checkpointing_works(torch_python, tmp_path):
    assert torch_python.tell(STEP, tmp_path) == {
        "learned": True,
        "finite": True,
        "scaled": True,
        "thread": ["cpucpu"],
        "scripted": [1.0, 1.0],
        "places": ["cpu"],
    }


def test_an_uncovered_call_is_a_gap_with_its_location_and_another_card_an_invalid_device(torch_python, tmp_path):
    script = """
emulation = install()
import torch
def sneaks_past(): return torch._C._VariableFunctions.zeros((2,), device="cuda")
told = []
for call in (sneaks_past, lambda: torch.cuda.set_device(1)):
    try: call()
    except RuntimeError as error: told.append([type(error).__name__, str(error)])
"""
    gap, invalid = torch_python.tell(script, tmp_path)
    assert gap[0] == "EmulationGap"
    assert "sneaks_past at " in gap[1]
    assert invalid[0] == "RuntimeError"
    assert "invalid device ordinal" in invalid[1]
