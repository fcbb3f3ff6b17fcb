"""The CPU, which every machine has, and the stand-in for CUDA, with which it acts as a GPU."""

from __future__ import annotations

from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Texts
from harness.run.devices.cuda import NO_GPU

# Answers 429 and 5xx of servers elsewhere; one on the same machine, or one that is made up, belongs to what is tested
# (RFC 2606 reserves names for that).
_OF_A_TEST = (
    r"localhost|127\.|0\.0\.0\.0|\[::1?\]|testserver|(?:[\w-]+\.)*(?:example\.(?:com|org|net)|test|example|invalid)\b"
)
_SERVER_FAILED = (
    r"(?:429 Client Error|5\d\d Server Error|[Cc]lient error '429\b|[Ss]erver error '5\d\d\b|\b(?:429|5\d\d), message=)"
    rf"(?!.*https?://(?:{_OF_A_TEST}))|HTTP Error (?:429|50[234])\b"
)
_DISK_FULL = r"\[Errno (?:28|122)\]|No space left on device|Disk quota exceeded"

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
        Texts(Outcome.MACHINE_FAILED, rf"{_SERVER_FAILED}|{_DISK_FULL}", anywhere=True),
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
