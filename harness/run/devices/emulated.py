"""The stand-in for CUDA: the CPU acts as a GPU. A call that only a real GPU can carry out is an emulation gap."""

from __future__ import annotations

from harness.model import Device, Outcome
from harness.run.devices.cuda import NO_GPU
from harness.run.devices.kind import DeviceKind, Texts

KIND = DeviceKind(
    name="emulated",
    device=Device.EMULATED,
    worth="a stand-in for CUDA on the CPU: Python code is real, GPU kernels and the driver are not",
    texts=(
        # Code that bypasses the stand-in finds no GPU.
        Texts(
            Outcome.EMULATION_GAP,
            rf"{NO_GPU}|invalid device context|Cannot initialize CUDA without|compiled without CUDA support"
            r"|not linked with support for cuda|Cannot access accelerator device when none is available"
            r"|requires a CUDA or other accelerator backend|but found some tensors to not be on a GPU"
            r"|cannot be accessed from Triton|from the 'CUDA' backend|0 active drivers|CUDA error:",
        ),
    ),
)
