"""Collects and installs the replacements for all names in torch.

Names are written without the leading `torch.`. Each module with a function `answers` has one part of the table.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from . import devices, kernels, memory, placement, precision, randomness, streams

if TYPE_CHECKING:
    from .device_profiles import Card

PARTS = (devices, memory, streams, randomness, placement, precision, kernels)
# Modules from which torch.cuda imports its names, or which import them from it.
_ALSO_IN = (
    "cuda.memory",
    "cuda.random",
    "cuda.streams",
    "cuda.graphs",
    "cuda._utils",
    "accelerator.memory",
    "amp.grad_scaler",
)


def table(torch: Any, card: Card) -> dict[str, Any]:
    """Return all replacements by name. `torch` is the probed module, before anything in it is replaced."""
    answers: dict[str, Any] = {}
    for part in PARTS:
        answers.update(part.answers(torch, card))
    return {name: _own(name, value) for name, value in answers.items()}


def _own(name: str, value: Any) -> Any:
    """Make a separate function for each name: torch._dynamo has rules by object, and rejects an object with two."""
    if not isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__"):
        return value
    last = name.rpartition(".")[2]
    own = types.FunctionType(value.__code__, value.__globals__, last, value.__defaults__, value.__closure__)
    own.__kwdefaults__, own.__doc__ = value.__kwdefaults__, value.__doc__
    return own


def answer(torch: Any, card: Card) -> None:
    """Install all replacements in the probed torch, and replace the remaining driver functions by gaps."""
    answers = table(torch, card)
    for name, value in answers.items():
        place, _, last = name.rpartition(".")
        holder = (
            functools.reduce(lambda found, part: getattr(found, part, None), place.split("."), torch)
            if place
            else torch
        )
        # A name that this torch lacks stays absent, because packages check for it. The driver functions in `_C`
        # are an exception: every build for CUDA has them, and the build for CPUs lacks them.
        if holder is None or not (hasattr(holder, last) or place == "_C"):
            continue
        original = getattr(holder, last, None)
        setattr(holder, last, value)
        if original is not None:
            _also(last, original, value)
            _keep_scriptable(original, value)
    kernels.close_the_rest(torch, set(answers))


def _also(name: str, original: Any, value: Any) -> None:
    for module_name in _ALSO_IN:
        module = sys.modules.get(f"torch.{module_name}")
        if module is not None and getattr(module, name, None) is original:
            setattr(module, name, value)


def _keep_scriptable(original: Any, value: Any) -> None:
    """Register the wrapper with `torch.jit.script`, which looks operators up by identity."""
    builtins = importlib.import_module("torch.jit._builtins")
    operator = builtins._find_builtin(original) if callable(original) else None  # noqa: SLF001
    if operator is not None:
        builtins._register_builtin(value, operator)  # noqa: SLF001
