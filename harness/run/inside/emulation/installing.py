"""The stand-in, put in place before the packages to probe are imported."""

from __future__ import annotations

from typing import Any

from .device_profiles import DEFAULT_CAPABILITY, card
from .imports import after_import
from .kernels import activate_triton, stop_launches
from .surroundings import prepare
from .table import answer


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
