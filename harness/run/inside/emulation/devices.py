"""Emulates the devices: one card, number 0, which is always the current one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .constants import constants, fixed
from .gaps import gap, gap_class

if TYPE_CHECKING:
    from .device_profiles import Card


_VALUES = {
    "backends.cuda.is_built": True,
    "cuda._is_compiled": True,
    "cuda.is_available": True,
    "cuda.is_initialized": True,
    "cuda.device_count": 1,
    "cuda.current_device": 0,
    "cuda.can_device_access_peer": False,
    "cuda.nvtx.range_push": 0,
    "cuda.nvtx.range_pop": 0,
    "accelerator.is_available": True,
    "accelerator.device_count": 1,
    "accelerator.current_device_index": 0,
    "accelerator.current_device_idx": 0,
    "_C._cuda_getDeviceCount": 1,
    "_C._cuda_getDevice": 0,
    "_C._cuda_isInBadFork": False,
}
_NOTHING = (
    "cuda.init",
    "cuda.synchronize",
    "cuda.ipc_collect",
    "cuda.nvtx.mark",
    "accelerator.synchronize",
    "_C._cuda_init",
    "_C._cuda_synchronize",
)
_GAPS = (
    "cuda.utilization",
    "cuda.temperature",
    "cuda.power_draw",
    "cuda.clock_rate",
    "cuda.current_blas_handle",
    "cuda.current_solver_handle",
    "cuda.cudart",
)
_SET_DEVICE = (
    "cuda.set_device",
    "accelerator.set_device_index",
    "accelerator.set_device_idx",
    "_C._cuda_setDevice",
)
_EXCHANGE_DEVICE = (
    "cuda._exchange_device",
    "cuda._maybe_exchange_device",
    "_C._cuda_exchangeDevice",
    "_C._cuda_maybeExchangeDevice",
)
_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def answers(torch: Any, card: Card) -> dict[str, Any]:
    """Return replacements for the device functions of `torch.cuda`, `torch.accelerator` and the driver, by name."""
    return {
        **constants(_VALUES, _NOTHING, _GAPS),
        **_about_the_card(torch, card),
        **_selection(torch),
        **_initialisation(torch.cuda),
        **_sync_debug_mode(),
        "version.cuda": torch.version.cuda or "12.8",
        "cuda.GreenContext": gap_class("torch.cuda.GreenContext"),
    }


def _about_the_card(torch: Any, card: Card) -> dict[str, Any]:
    def properties(device: Any = None) -> Card:
        _index(torch, device)
        return card

    return {
        "cuda.get_device_name": lambda device=None: properties(device).name,
        "cuda.get_device_capability": lambda device=None: properties(device).capability,
        "cuda.get_device_properties": properties,
        "cuda.get_arch_list": lambda: [f"sm_{card.arch}"],
        "cuda.get_gencode_flags": fixed(f"-gencode compute=compute_{card.arch},code=sm_{card.arch}"),
        "cuda.is_tf32_supported": fixed(card.major >= 8),
        "accelerator.get_device_capability": lambda _device=None: {"supported_dtypes": set()},
    }


def _selection(torch: Any) -> dict[str, Any]:
    class device:  # noqa: N801 - stands for torch.cuda.device
        """Selects the one device. Accepts the CPU too, where the tensors really are."""

        def __init__(self, device: Any = None) -> None:
            self.idx = _index(torch, device)
            self.prev_idx = 0

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    class device_of(device):  # noqa: N801 - stands for torch.cuda.device_of
        """Selects the device of a tensor."""

        def __init__(self, obj: Any) -> None:  # noqa: ARG002
            super().__init__(0)

    def set_device(device: Any) -> None:
        _index(torch, device)

    def exchange(device: Any) -> int:
        return _index(torch, device) if not isinstance(device, int) or device >= 0 else -1

    def current_accelerator(check_available: bool = False) -> Any:  # noqa: ARG001, FBT001, FBT002, RUF100
        return torch.device("cuda")

    return {
        **dict.fromkeys(_SET_DEVICE, set_device),
        **dict.fromkeys(_EXCHANGE_DEVICE, exchange),
        "cuda.device": device,
        "cuda.device_of": device_of,
        "accelerator.device_index": device,
        "accelerator.current_accelerator": current_accelerator,
    }


def _initialisation(cuda: Any) -> dict[str, Any]:
    def lazy_init() -> None:
        # torch's C++ calls this itself to create a tensor on a device of type "cuda" that no replacement
        # redirected (torch/csrc/utils/device_lazy_init.cpp). Then the caller's own code does not name the
        # function, and the driver would fail next.
        caller = sys._getframe(1).f_code  # noqa: SLF001 - the only way to know the caller
        if not {"_lazy_init", "init"} & {*caller.co_names, *map(str, caller.co_consts)}:
            raise gap(f"{caller.co_name} at {caller.co_filename}:{sys._getframe(1).f_lineno}")  # noqa: SLF001
        cuda._initialized = True  # noqa: SLF001 - torch sets it, and torch.utils.checkpoint reads it

    def lazy_call(queued: Any, **_: Any) -> None:
        queued()

    return {"cuda._lazy_init": lazy_init, "cuda._lazy_call": lazy_call}


def _sync_debug_mode() -> dict[str, Any]:
    current = [0]

    def set_mode(mode: Any) -> None:
        current[0] = _SYNC_DEBUG_MODES.get(mode, mode)

    return {"cuda.get_sync_debug_mode": lambda: current[0], "cuda.set_sync_debug_mode": set_mode}


def _index(torch: Any, device: Any = None) -> int:
    """Return 0, the index of the one device. Raises `RuntimeError` for any other device."""
    ordinal = device if isinstance(device, int) else _number(torch, device)
    if ordinal > 0:
        raise RuntimeError(f"CUDA error: invalid device ordinal ({ordinal}; the stand-in has device 0 only)")
    return 0


def _number(torch: Any, device: Any) -> int:
    """The index in a device given as text, object or None."""
    if device is None:
        return 0
    if hasattr(device, "idx"):
        return int(device.idx)
    return torch.device(device).index or 0
