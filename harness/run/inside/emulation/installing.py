"""Installs the stand-in: sets variables, waits for the import of torch and triton, and then replaces their functions.

Names of functions are written without the leading `torch.`. The stand-in must not import torch itself, because a repro
may set variables that torch reads on import.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any

from . import kernels, tensors
from .card import DEFAULT_CAPABILITY, Card, answers, card

if TYPE_CHECKING:
    from collections.abc import Callable

# torch.compile can't trace the Python wrappers around torch's functions. UNSLOTH_COMPILE_DISABLE is not set: it would
# turn off unsloth's rewriting of sources, and with it the workaround that decides the verdict.
_VARIABLES = {
    "TORCHDYNAMO_DISABLE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # otherwise Inductor starts compile processes that nothing uses
    "CUDA_VISIBLE_DEVICES": "0",
}
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
_waiting: dict[str, Callable[[Any], None]] = {}


def install(*, capability: str = DEFAULT_CAPABILITY) -> None:
    """Install the stand-in, which takes effect as soon as torch and triton are imported.

    `capability` is the compute capability to emulate ("7.5", "8.6", "9.0", ... see `CARDS`). Raises `ValueError` if
    there is no such card. Call it once, before the probed packages are imported.
    """
    pretended = card(capability)
    prepare()
    after_import("torch", lambda torch: replace(torch, pretended))
    after_import("triton.runtime.driver", lambda module: kernels.activate_triton(module, pretended))
    after_import("triton.runtime.jit", kernels.stop_launches)


def prepare() -> None:
    """Set the variables that the stand-in needs, and keep packages from linking CUDA as root.

    unsloth runs `ldconfig` if it finds no libcuda, which changes the machine for everyone.
    """
    os.environ.update(_VARIABLES)
    run = os.system

    def system(command: Any) -> int:
        return 0 if re.search(r"\bldconfig\b", os.fsdecode(command)) else run(command)

    os.system = system


def table(torch: Any, card: Card) -> dict[str, Any]:
    """Return all replacements by name. `torch` is the probed module, before anything in it is replaced."""
    found = {**answers(torch, card), **tensors.answers(torch), **kernels.answers(torch)}
    return {name: _own(name, value) for name, value in found.items()}


def _own(name: str, value: Any) -> Any:
    """Make a separate function for each name: torch._dynamo has rules by object, and rejects an object with two."""
    if not isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__"):
        return value
    last = name.rpartition(".")[2]
    own = types.FunctionType(value.__code__, value.__globals__, last, value.__defaults__, value.__closure__)
    own.__kwdefaults__, own.__doc__ = value.__kwdefaults__, value.__doc__
    return own


def replace(torch: Any, card: Card) -> None:
    """Install all replacements in the probed torch, and replace the remaining driver functions by gaps."""
    replacements = table(torch, card)
    for name, value in replacements.items():
        place, _, last = name.rpartition(".")
        holder = tensors.original(torch, place)
        # A name that this torch lacks stays absent, because packages check for it. The driver functions in `_C`
        # are an exception: every build for CUDA has them, and the build for CPUs lacks them.
        if holder is None or not (hasattr(holder, last) or place == "_C"):
            continue
        original = getattr(holder, last, None)
        setattr(holder, last, value)
        if original is not None:
            _also(last, original, value)
            _keep_scriptable(original, value)
    kernels.close_the_rest(torch, set(replacements))


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


def after_import(name: str, act: Callable[[Any], None]) -> None:
    """Call `act` with the module `name` as soon as it is imported, or now if it already is."""
    if name in sys.modules:
        act(sys.modules[name])
        return
    _waiting[name] = act
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds watched modules with the other finders, and has their loaders call the function that waits for each."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _act_after(spec.loader)
                return spec
        return None


def _act_after(loader: Any) -> None:
    """Have a loader call the function that waits for its module, once, after it has loaded it."""

    def exec_module(module: Any) -> None:
        del loader.exec_module
        loader.exec_module(module)
        act = _waiting.pop(module.__name__, None)
        if act is not None:
            act(module)

    loader.exec_module = exec_module
