"""A stand-in for CUDA: packages that insist on a GPU run on the CPU, and what only a GPU can do is a gap.

It answers what a package asks of `torch.cuda` and of triton's driver, and lets tensors land on the CPU. It
needs nothing but the standard library and the probed torch (2.5 and later), on Python 3.9 and later.

    cards         the card that is pretended, by compute capability
    devices       which devices there are
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

A verdict seen here is about the Python side of a training step: autograd, checkpointing, rewriting of sources.
It says nothing on kernels, on precision or on memory.
"""

from __future__ import annotations

from typing import Any

from .cards import CARDS, DEFAULT_CAPABILITY, card
from .gaps import EmulationGap, as_gap
from .imports import after_import
from .kernels import activate_triton, stop_launches
from .surroundings import prepare
from .table import answer

__all__ = ["CARDS", "EmulationGap", "as_gap", "install"]


def install(*, capability: str = DEFAULT_CAPABILITY) -> None:
    """Put the stand-in in place, to answer from the moment that torch and triton have been imported.

    `capability` is the compute capability to pretend ("7.5", "8.6", "9.0", ... see `CARDS`). Raises
    ValueError where there is no such card. Call it once, before the packages to probe are imported.
    """
    pretended = card(capability)
    prepare()

    def torch_came(torch: Any) -> None:
        answer(torch, pretended)

    after_import("torch", torch_came)
    after_import("triton.runtime.driver", lambda module: activate_triton(module, pretended))
    after_import("triton.runtime.jit", stop_launches)
