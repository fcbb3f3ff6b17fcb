"""A stand-in for CUDA: packages that require a GPU run on the CPU. A call that needs a real GPU is an emulation gap.

It replaces functions of `torch.cuda` and triton's driver, and creates tensors on the CPU. It needs only the standard
library and the probed torch (2.5 and later), on Python 3.9 and later.

    device_profiles  the emulated cards, by compute capability
    devices       the one device
    memory        the memory of the card
    streams       streams and events
    randomness    seeds, states, generators
    placement     tensors are created on the CPU
    precision     autocast
    kernels       operators, triton; a launch is a gap
    gaps          EmulationGap
    table         all replaced names, from the modules above
    surroundings  environment variables, and commands that are not run
    imports       runs a function right after `import torch`

A verdict with the stand-in is about the Python side of a training step: autograd, checkpointing, rewriting of sources.
It says nothing about kernels, precision or memory.
"""

from .device_profiles import CARDS
from .gaps import EmulationGap, as_gap
from .installing import install

__all__ = ["CARDS", "EmulationGap", "as_gap", "install"]
