"""A stand-in for CUDA: packages that require a GPU run on the CPU. What only a GPU can do is an emulation gap.

It answers what a package asks of `torch.cuda` and of triton's driver, and lets tensors land on the CPU. It
needs nothing but the standard library and the probed torch (2.5 and later), on Python 3.9 and later.

    device_profiles  the emulated cards, by compute capability
    devices       the one device
    memory        the card's bytes
    streams       streams and events
    randomness    seeds, states, generators
    placement     tensors land on the CPU
    precision     autocast
    kernels       operators, triton; a launch is a gap
    gaps          EmulationGap
    table         the names that are answered, out of the modules above
    surroundings  variables, and commands that are not run
    imports       all this right after `import torch`, and not before

A verdict here is about the Python side of a training step: autograd, checkpointing, rewriting of sources.
It says nothing about kernels, precision or memory.
"""

from .device_profiles import CARDS
from .gaps import EmulationGap, as_gap
from .installing import install

__all__ = ["CARDS", "EmulationGap", "as_gap", "install"]
