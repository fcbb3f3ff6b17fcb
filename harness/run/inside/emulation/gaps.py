"""Emulation gaps: calls that only a real GPU can carry out. A separate exception distinguishes them from bugs.

The stand-in raises it for calls that it recognises. If torch or another library fails because there is no driver,
`as_gap` recognises the message.
"""

from __future__ import annotations

import re
from typing import Any

# Messages of code that needs a real device and that the stand-in did not intercept, in torch (c10/cuda,
# torch/cuda/__init__.py, the dispatcher), triton and bitsandbytes.
_WORDS = (
    "Found no NVIDIA driver",
    "CUDA driver version is insufficient",
    "Torch not compiled with CUDA enabled",
    "No CUDA GPUs are available",
    "no CUDA-capable device is detected",
    "Cannot initialize CUDA without ATen_cuda library",
    "with arguments from the 'CUDA' backend",
    "Cannot access accelerator device when none is available",  # torch.device(0) in a build for CPUs
    "requires a CUDA or other accelerator backend",
    "libcuda.so cannot found",
    "libcuda.so cannot be found",
    "0 active drivers",
    "but found some tensors to not be on a GPU",
    "cannot be accessed from Triton (cpu tensor?)",
)
# The dispatcher's message for an operator that has a kernel for CUDA but none for the CPU.
_ONLY_ON_THE_CARD = re.compile(r"with arguments from the 'CPU' backend.*\[(?:\w+, )*CUDA[,\]]", re.DOTALL)


class EmulationGap(RuntimeError):
    """The stand-in for CUDA cannot carry out this call; only a GPU can."""


class AttributeEmulationGap(EmulationGap, AttributeError):
    """A missing attribute that only a GPU has: `hasattr` and `getattr` with a default still work."""


class Incomplete:
    """Base class of stand-ins for driver objects: a missing attribute is a gap."""

    def __getattr__(self, name: str) -> Any:
        what = f"{type(self).__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(what)
        raise AttributeEmulationGap(_sentence(what))


def gap(what: str) -> EmulationGap:
    """Return the gap to raise for a call named `what`."""
    return EmulationGap(_sentence(what))


def _sentence(what: str) -> str:
    return f"{what} needs a real GPU: the stand-in for CUDA has no answer to it"


def as_gap(error: BaseException) -> EmulationGap | None:
    """Return the gap that an exception or one of its causes means, or None."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, EmulationGap):
            return seen
        said = str(seen)
        if any(words in said for words in _WORDS) or _ONLY_ON_THE_CARD.search(said):
            return gap(f"a call that ended in {type(seen).__name__} ({said.strip().splitlines()[0][:200]})")
        seen = seen.__cause__
    return None


def gap_function(name: str) -> Any:
    """Return a function that raises the gap of this name."""

    def missing(*_: Any, **__: Any) -> Any:
        raise gap(name)

    missing.__name__ = missing.__qualname__ = name.rpartition(".")[2]
    return missing


def gap_class(name: str) -> Any:
    """Return a class that raises the gap of this name when it is called; annotations may still use it."""

    def new(_cls: type, *_: Any, **__: Any) -> Any:
        raise gap(name)

    return type(name.rpartition(".")[2], (), {"__new__": new})
