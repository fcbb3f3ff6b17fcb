"""Mixed precision: autocast for the card is autocast for the CPU, which does the work."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device_profiles import Card


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for the functions that enable autocast or query its state, by name."""
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
