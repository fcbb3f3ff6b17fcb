"""Installs the stand-in before the probed packages are imported."""

from __future__ import annotations

from typing import Any

from .device_profiles import DEFAULT_CAPABILITY, card
from .imports import after_import
from .kernels import activate_triton, stop_launches
from .surroundings import prepare
from .table import answer


def install(*, capability: str = DEFAULT_CAPABILITY) -> None:
    """Install the stand-in, which takes effect as soon as torch and triton are imported.

    `capability` is the compute capability to emulate ("7.5", "8.6", "9.0", ... see `CARDS`). Raises `ValueError` if
    there is no such card. Call it once, before the probed packages are imported.
    """
    pretended = card(capability)
    prepare()

    def torch_came(torch: Any) -> None:
        answer(torch, pretended)

    after_import("torch", torch_came)
    after_import("triton.runtime.driver", lambda module: activate_triton(module, pretended))
    after_import("triton.runtime.jit", stop_launches)
