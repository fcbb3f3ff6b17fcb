"""The devices: one card, number 0, which is always the current one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .gaps import gap, gap_class, gap_function

if TYPE_CHECKING:
    from .device_profiles import Card


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: C901 - a table; torch._dynamo wants plain functions in it
    """Answers of `torch.cuda`, `torch.accelerator` and the driver about devices."""
    cuda = torch.cuda

    class device:  # noqa: N801 - stands for torch.cuda.device
        """Selects the one device. Accepts the CPU too, where its tensors really are."""

        def __init__(self, device: Any = None) -> None:
            self.idx = index(device)
            self.prev_idx = 0

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    class device_of(device):  # noqa: N801 - stands for torch.cuda.device_of
        """Selects the device of a tensor."""

        def __init__(self, obj: Any) -> None:  # noqa: ARG002
            super().__init__(0)

    def index(device: Any = None) -> int:
        ordinal = device if isinstance(device, int) else _number(torch, device)
        if ordinal > 0:
            raise RuntimeError(f"CUDA error: invalid device ordinal ({ordinal}; the stand-in has device 0 only)")
        return 0

    def lazy_init() -> None:
        # torch's C++ calls this by itself when a tensor is asked for on a device of type "cuda" that no
        # answer of ours has redirected (torch/csrc/utils/device_lazy_init.cpp). Then the caller's own code
        # does not name the function, and what would follow is the driver's error.
        caller = sys._getframe(1).f_code  # noqa: SLF001 - the only way to know the caller
        if not {"_lazy_init", "init"} & {*caller.co_names, *map(str, caller.co_consts)}:
            raise gap(f"{caller.co_name} at {caller.co_filename}:{sys._getframe(1).f_lineno}")  # noqa: SLF001
        cuda._initialized = True  # noqa: SLF001 - what torch itself sets; torch.utils.checkpoint reads it

    def nothing(*_: Any, **__: Any) -> None:
        """Nothing to do: the work of this device is always finished."""

    def properties(device: Any = None) -> Card:
        index(device)
        return card

    def number(_device: Any = None) -> int:
        return 0

    def set_device(device: Any) -> None:
        index(device)

    def exchange(device: Any) -> int:
        return index(device) if not isinstance(device, int) or device >= 0 else -1

    def lazy_call(queued: Any, **_: Any) -> None:
        queued()

    def current_accelerator(check_available: bool = False) -> Any:  # noqa: ARG001, FBT001, FBT002, RUF100
        return torch.device("cuda")

    sync_debug_mode = [0]

    def set_sync_debug_mode(mode: Any) -> None:
        sync_debug_mode[0] = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)

    return {
        "version.cuda": torch.version.cuda or "12.8",
        "backends.cuda.is_built": lambda: True,
        "cuda._is_compiled": lambda: True,
        "cuda.is_available": lambda: True,
        "cuda.device_count": lambda: 1,
        "cuda.current_device": number,
        "cuda.set_device": set_device,
        "cuda.init": nothing,
        "cuda._lazy_init": lazy_init,
        "cuda._lazy_call": lazy_call,
        "cuda.is_initialized": lambda: True,
        "cuda.synchronize": nothing,
        "cuda.ipc_collect": nothing,
        "cuda.get_device_name": lambda device=None: properties(device).name,
        "cuda.get_device_capability": lambda device=None: properties(device).capability,
        "cuda.get_device_properties": properties,
        "cuda.can_device_access_peer": lambda _device, _peer: False,
        "cuda.get_arch_list": lambda: [f"sm_{card.arch}"],
        "cuda.get_gencode_flags": lambda: f"-gencode compute=compute_{card.arch},code=sm_{card.arch}",
        "cuda.get_sync_debug_mode": lambda: sync_debug_mode[0],
        "cuda.set_sync_debug_mode": set_sync_debug_mode,
        "cuda.device": device,
        "cuda.device_of": device_of,
        "cuda._exchange_device": exchange,
        "cuda._maybe_exchange_device": exchange,
        "cuda.utilization": gap_function("torch.cuda.utilization"),
        "cuda.temperature": gap_function("torch.cuda.temperature"),
        "cuda.power_draw": gap_function("torch.cuda.power_draw"),
        "cuda.clock_rate": gap_function("torch.cuda.clock_rate"),
        "cuda.is_tf32_supported": lambda: card.major >= 8,
        "cuda.current_blas_handle": gap_function("torch.cuda.current_blas_handle"),
        "cuda.current_solver_handle": gap_function("torch.cuda.current_solver_handle"),
        "cuda.GreenContext": gap_class("torch.cuda.GreenContext"),
        "cuda.cudart": gap_function("torch.cuda.cudart"),
        "cuda.nvtx.range_push": number,
        "cuda.nvtx.range_pop": lambda: 0,
        "cuda.nvtx.mark": nothing,
        "accelerator.is_available": lambda: True,
        "accelerator.device_count": lambda: 1,
        "accelerator.current_accelerator": current_accelerator,
        "accelerator.current_device_index": lambda: 0,
        "accelerator.current_device_idx": lambda: 0,
        "accelerator.set_device_index": set_device,
        "accelerator.set_device_idx": set_device,
        "accelerator.device_index": device,
        "accelerator.synchronize": nothing,
        "accelerator.get_device_capability": lambda _device=None: {"supported_dtypes": set()},
        "_C._cuda_getDeviceCount": lambda: 1,
        "_C._cuda_getDevice": lambda: 0,
        "_C._cuda_setDevice": set_device,
        "_C._cuda_exchangeDevice": exchange,
        "_C._cuda_maybeExchangeDevice": exchange,
        "_C._cuda_init": nothing,
        "_C._cuda_synchronize": nothing,
        "_C._cuda_isInBadFork": lambda: False,
    }


def _number(torch: Any, device: Any) -> int:
    """The index in a device given as text, object or None."""
    if device is None:
        return 0
    if hasattr(device, "idx"):
        return int(device.idx)
    return torch.device(device).index or 0
