"""The CPU, which every machine has, and the stand-in for CUDA, with which it acts as a GPU."""

from __future__ import annotations

from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Texts
from harness.run.devices.cuda import NO_GPU

CPU = DeviceKind(
    name="cpu",
    device=Device.CPU,
    worth="the CPU, where bugs in GPU kernels and drivers can't show",
    texts=(
        Texts(
            Outcome.OUT_OF_MEMORY,
            r"DefaultCPUAllocator: (can't allocate|not enough) memory|std::bad_alloc"
            r"|\[Errno 12\] Cannot allocate memory",
            anywhere=True,
        ),
    ),
)
STAND_IN = DeviceKind(
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
