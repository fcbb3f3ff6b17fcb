"""Keeps on the CPU what a package requests on the card: tensors, mixed precision, and random numbers.

This wraps functions instead of entering a torch mode, because a mode holds for one thread only and transformers 5 loads
weights in several. The drawback is that `torch.compile` can't trace through the wrappers; `TORCHDYNAMO_DISABLE=1` keeps
it from trying.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

# Functions of torch.utils._device that take a device, the `*_like` functions, and torch.normal.
_FACTORIES = (
    *("arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like"),
    *("empty_permuted", "empty_strided", "eye", "full", "full_like", "hamming_window", "hann_window"),
    *("kaiser_window", "linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint"),
    *("randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor", "sparse_coo_tensor"),
    *("sparse_csr_tensor", "sparse_compressed_tensor", "tensor", "tril_indices", "triu_indices", "zeros"),
    *("zeros_like", "fft.fftfreq", "fft.rfftfreq", "nested.nested_tensor"),
)
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros", "to")


def answers(torch: Any) -> dict[str, Any]:
    """Return replacements for the functions of torch that create or move tensors, or depend on where they are."""
    return {**_placement(torch), **_precision(torch), **_randomness(torch)}


def _on_cpu(torch: Any, device: Any) -> Any:
    """Return the device to use for `device`: the CPU if it names the card, in any form."""
    if isinstance(device, str):
        return "cpu" if device.partition(":")[0] == "cuda" else device
    if isinstance(device, torch.device):
        return torch.device("cpu") if device.type == "cuda" else device
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) else device


def _placement(torch: Any) -> dict[str, Any]:
    names = [name for name in (*_FACTORIES, *(f"Tensor.{name}" for name in _METHODS)) if original(torch, name)]
    table = {name: _redirected(torch, original(torch, name)) for name in names}

    def cuda(tensor: Any, device: Any = None, *_: Any, memory_format: Any = torch.preserve_format, **__: Any) -> Any:  # noqa: ARG001
        return tensor.to("cpu", memory_format=memory_format)

    def pin_memory(tensor: Any, device: Any = None) -> Any:  # noqa: ARG001
        return tensor

    type_of = torch.Tensor.type

    def type_(tensor: Any, dtype: Any = None, *given: Any, **named: Any) -> Any:
        return type_of(
            tensor, dtype.replace("torch.cuda.", "torch.") if isinstance(dtype, str) else dtype, *given, **named
        )

    # `with torch.device(...)` enters this class; torch imports its module only then.
    context = importlib.import_module("torch.utils._device").DeviceContext
    begin = context.__init__
    load = torch.load

    def context_begins(self: Any, device: Any) -> None:
        begin(self, _on_cpu(torch, device))

    @functools.wraps(load)
    def load_on_cpu(f: Any, map_location: Any = None, *given: Any, **named: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {place: _on_cpu(torch, where) for place, where in map_location.items()}
        return load(f, _on_cpu(torch, map_location), *given, **named)

    return {
        **table,
        "Tensor.cuda": cuda,
        "Tensor.pin_memory": pin_memory,
        "Tensor.type": type_,
        "utils._device.DeviceContext.__init__": context_begins,
        "load": load_on_cpu,
    }


def original(torch: Any, name: str) -> Any:
    """Return what torch has by this name, itself for "", and None if it has no such name."""
    return functools.reduce(lambda found, part: getattr(found, part, None), filter(None, name.split(".")), torch)


def _redirected(torch: Any, call: Any) -> Any:
    moves = call.__name__ == "to"

    @functools.wraps(call)
    def on_cpu(*given: Any, **named: Any) -> Any:
        if moves and len(given) > 1:
            given = (given[0], _on_cpu(torch, given[1]), *given[2:])
        if named:
            if "device" in named:
                named["device"] = _on_cpu(torch, named["device"])
            named.pop("pin_memory", None)  # pinning needs the driver
        return call(*given, **named)

    return on_cpu


def _precision(torch: Any) -> dict[str, Any]:
    """Autocast for the card is autocast for the CPU, which does the work."""
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    @functools.wraps(begin)
    def begins(self: Any, device_type: str, dtype: Any = None, *given: Any, **named: Any) -> None:
        if device_type == "cuda" and dtype is None:
            dtype = torch.float16  # autocast's default for the card; for the CPU it would be bfloat16
        begin(self, "cpu" if device_type == "cuda" else device_type, dtype, *given, **named)

    def redirected(ask: Any) -> Any:
        # Without a device type, these functions mean the card (torch/csrc/autograd/init.cpp).
        @functools.wraps(ask)
        def asked_of_cpu(device_type: Any = "cuda", *given: Any) -> Any:
            if isinstance(device_type, bool):  # set_autocast_enabled(enabled), without a device type
                return ask("cpu", device_type)
            return ask("cpu" if device_type == "cuda" else device_type, *given)

        return asked_of_cpu

    def in_full(normalize: Any) -> Any:
        # Autocast for the card computes these in float32 (AT_FORALL_FP32 in ATen/autocast_mode.h), autocast for
        # the CPU does not, and the CPU's kernels reject the resulting mix of dtypes.
        @functools.wraps(normalize)
        def normalized(*given: Any, **named: Any) -> Any:
            if not torch.is_autocast_enabled("cpu"):
                return normalize(*given, **named)
            return normalize(*map(full, given), **{name: full(value) for name, value in named.items()})

        return normalized

    def full(value: Any) -> Any:
        half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if half else value

    asked = ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype")
    return {
        **{name: redirected(getattr(torch, name)) for name in asked},
        **{name: in_full(getattr(torch, name)) for name in ("layer_norm", "group_norm")},
        "amp.autocast_mode.autocast.__init__": begins,
        "get_autocast_gpu_dtype": lambda: torch.get_autocast_dtype("cpu"),
        "set_autocast_gpu_dtype": lambda dtype: torch.set_autocast_dtype("cpu", dtype),
    }


def _randomness(torch: Any) -> dict[str, Any]:
    """Random numbers come from the generator of the CPU, where the tensors are."""
    made = torch.Generator

    class GeneratorType(type):
        """Makes generators of the CPU instances of the class below."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, made)

        def __call__(cls, device: Any = "cpu") -> Any:
            return made(device=_on_cpu(torch, device))

    class Generator(metaclass=GeneratorType):
        """Creates a generator of the CPU for any device."""

    return {"Generator": Generator, "cuda.default_generators": (torch.default_generator,)}
