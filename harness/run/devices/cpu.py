"""The CPU. Every machine has one, and out of memory means the machine's memory."""

from __future__ import annotations

from harness.model import Device, Outcome
from harness.run.devices.kind import DeviceKind, Texts

KIND = DeviceKind(
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
