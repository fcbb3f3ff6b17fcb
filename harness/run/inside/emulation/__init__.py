"""A stand-in for CUDA: packages that require a GPU run on the CPU. A call that needs a real GPU is an emulation gap.

It replaces functions of `torch.cuda` and triton's driver, and creates tensors on the CPU. It needs only the standard
library and the probed torch (2.5 and later), on Python 3.9 and later.

    card          the emulated cards, by compute capability: properties, selection, memory
    tensors       tensors, autocast and random numbers stay on the CPU
    kernels       streams, operators, triton; a launch is a gap (EmulationGap)
    installing    environment variables, commands that are not run, and all replaced names

A verdict with the stand-in is about the Python side of a training step: autograd, checkpointing, rewriting of sources.
It says nothing about kernels, precision or memory.
"""

from .card import CARDS
from .installing import install
from .kernels import EmulationGap

__all__ = ["CARDS", "EmulationGap", "install"]
