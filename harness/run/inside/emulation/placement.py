"""Creates every tensor on the CPU that a package requests on the card.

This wraps functions instead of entering a torch mode, because a mode holds for one thread only and transformers 5 loads
weights in several. The drawback is that `torch.compile` can't trace through the wrappers; `TORCHDYNAMO_DISABLE=1` keeps
it from trying.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device_profiles import Card


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


def on_cpu(torch: Any, device: Any) -> Any:
    """Return the device to use for `device`: the CPU if it names the card, in any form."""
    if isinstance(device, str):
        return "cpu" if device.partition(":")[0] == "cuda" else device
    if isinstance(device, torch.device):
        return torch.device("cpu") if device.type == "cuda" else device
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) else device


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for the functions that create tensors on a device or move them there, by name."""
    table = {name: _factory(torch, _original(torch, name)) for name in _FACTORIES if _original(torch, name)}
    table.update({f"Tensor.{name}": _method(torch, getattr(torch.Tensor, name)) for name in _METHODS})

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
        begin(self, on_cpu(torch, device))

    @functools.wraps(load)
    def load_on_cpu(f: Any, map_location: Any = None, *given: Any, **named: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {place: on_cpu(torch, where) for place, where in map_location.items()}
        return load(f, on_cpu(torch, map_location), *given, **named)

    return {
        **table,
        "Tensor.cuda": cuda,
        "Tensor.pin_memory": pin_memory,
        "Tensor.type": type_,
        "utils._device.DeviceContext.__init__": context_begins,
        "load": load_on_cpu,
    }


def _original(torch: Any, name: str) -> Any:
    return functools.reduce(lambda found, part: getattr(found, part, None), name.split("."), torch)


def _factory(torch: Any, make: Any) -> Any:
    @functools.wraps(make)
    def made_on_cpu(*given: Any, **named: Any) -> Any:
        if named:
            if "device" in named:
                named["device"] = on_cpu(torch, named["device"])
            named.pop("pin_memory", None)  # pinning needs the driver
        return make(*given, **named)

    return made_on_cpu


def _method(torch: Any, act: Any) -> Any:
    moves = act.__name__ == "to"

    @functools.wraps(act)
    def act_on_cpu(tensor: Any, *given: Any, **named: Any) -> Any:
        if moves and given:
            given = (on_cpu(torch, given[0]), *given[1:])
        if named:
            if "device" in named:
                named["device"] = on_cpu(torch, named["device"])
            named.pop("pin_memory", None)
        return act(tensor, *given, **named)

    return act_on_cpu
