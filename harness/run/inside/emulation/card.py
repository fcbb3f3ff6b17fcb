"""Emulates one card, number 0, which is always the current device: its properties, its selection and its memory.

Packages branch on the compute capability (bfloat16 from 8.0, fp8 from 8.9), a few on memory and multiprocessors. The
numbers come from the cards' data sheets and from "Technical specifications per compute capability" in the CUDA C++
programming guide.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from .kernels import Incomplete, fixed, gap, gap_class, gap_function, nothing

_MIB = 1024 * 1024
_KIB = 1024
_NO_UUID = uuid.UUID(int=0)
_VALUES = {
    "backends.cuda.is_built": True,
    "cuda.is_available": True,
    "cuda.is_initialized": True,
    "cuda.device_count": 1,
    "cuda.can_device_access_peer": False,
    "cuda.nvtx.range_push": 0,
    "cuda.nvtx.range_pop": 0,
    "cuda.device_memory_used": 0,
    "cuda.memory_usage": 0,
    "cuda.memory_summary": "the stand-in for CUDA allocates nothing",
    "cuda.list_gpu_processes": "no processes are running",
    "cuda.get_per_process_memory_fraction": 1.0,
    "cuda.get_allocator_backend": "native",
    "cuda.get_sync_debug_mode": 0,
    "accelerator.is_available": True,
    "accelerator.device_count": 1,
    "accelerator.current_device_index": 0,
    "accelerator.current_device_idx": 0,
    "_C._cuda_getDeviceCount": 1,
    "_C._cuda_getDevice": 0,
    "_C._cuda_isInBadFork": False,
}
_NOTHING = (
    *("cuda.ipc_collect", "cuda.nvtx.mark", "cuda.set_sync_debug_mode"),
    *("cuda.reset_peak_memory_stats", "cuda.reset_accumulated_memory_stats"),
    *("cuda.reset_max_memory_allocated", "cuda.reset_max_memory_cached"),
    *("cuda.reset_accumulated_host_memory_stats", "accelerator.empty_host_cache"),
    *("cuda.set_per_process_memory_fraction", "cuda.memory._set_allocator_settings"),
    *("cuda.memory._record_memory_history", "cuda.reset_peak_host_memory_stats"),
    *("accelerator.synchronize", "accelerator.empty_cache"),
    *("accelerator.reset_peak_memory_stats", "accelerator.reset_accumulated_memory_stats"),
    *("_C._cuda_init", "_C._cuda_synchronize", "_C._cuda_emptyCache"),
    *("_C._cuda_resetPeakMemoryStats", "_C._cuda_resetAccumulatedMemoryStats"),
)
_GAPS = (
    *("cuda.utilization", "cuda.temperature", "cuda.power_draw", "cuda.clock_rate", "cuda.cudart"),
    *("cuda.current_blas_handle", "cuda.current_solver_handle", "cuda.graph_pool_handle"),
    *("cuda.caching_allocator_alloc", "cuda.caching_allocator_delete", "cuda.get_stream_from_external"),
)
_GAP_CLASSES = (
    *("cuda.GreenContext", "cuda.MemPool", "cuda.CUDAPluggableAllocator"),
    *("cuda.CUDAGraph", "cuda.graph", "accelerator.Graph", "cuda.ExternalStream"),
)
_SET_DEVICE = ("cuda.set_device", "accelerator.set_device_index", "accelerator.set_device_idx", "_C._cuda_setDevice")
_EXCHANGE_DEVICE = (
    *("cuda._exchange_device", "cuda._maybe_exchange_device"),
    *("_C._cuda_exchangeDevice", "_C._cuda_maybeExchangeDevice"),
)
_KINDS = ("allocated", "reserved", "active", "inactive_split", "requested")
_WHEN = ("current", "peak", "allocated", "freed")


@dataclass(frozen=True)
class Card(Incomplete):
    """The properties that `torch.cuda.get_device_properties` returns. Sizes are in bytes, rates in kHz."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    shared_memory_per_multiprocessor: int
    shared_memory_per_block_optin: int
    L2_cache_size: int
    clock_rate: int
    shared_memory_per_block: int = 48 * _KIB
    regs_per_multiprocessor: int = 65536
    max_threads_per_block: int = 1024
    warp_size: int = 32
    memory_clock_rate: int = 7_000_000
    memory_bus_width: int = 256
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""  # noqa: N815 - torch's name; empty on NVIDIA's cards
    uuid: uuid.UUID = _NO_UUID

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability as (major, minor)."""
        return self.major, self.minor

    @property
    def arch(self) -> int:
        """The compute capability as triton writes it: 86 for 8.6."""
        return 10 * self.major + self.minor


# From NVIDIA's data sheets: name, memory in MiB, multiprocessors, threads and KiB of shared memory per multiprocessor,
# L2 cache in MiB, clock rate in MHz.
_DATA_SHEETS = {
    "7.0": ("Tesla V100-SXM2-16GB", 16144, 80, 2048, 96, 6, 1530),
    "7.5": ("Tesla T4", 15095, 40, 1024, 64, 4, 1590),
    "8.0": ("NVIDIA A100-SXM4-40GB", 40338, 108, 2048, 164, 40, 1410),
    "8.6": ("NVIDIA GeForce RTX 3080 Laptop GPU", 16111, 48, 1536, 100, 4, 1710),
    "8.9": ("NVIDIA L4", 22563, 58, 1536, 100, 48, 2040),
    "9.0": ("NVIDIA H200", 143156, 132, 2048, 228, 50, 1980),
    "10.0": ("NVIDIA B200", 182642, 148, 2048, 228, 126, 1965),
    "12.0": ("NVIDIA GeForce RTX 5090", 32109, 170, 1536, 100, 96, 2407),
}


def _card(capability: str) -> Card:
    name, memory, processors, threads, shared, cache, clock = _DATA_SHEETS[capability]
    major, minor = map(int, capability.split("."))
    # From 8.0 on, each multiprocessor reserves one KiB of shared memory for the system.
    optin = shared - 1 if major >= 8 else shared
    return Card(
        name=name,
        major=major,
        minor=minor,
        total_memory=memory * _MIB,
        multi_processor_count=processors,
        max_threads_per_multi_processor=threads,
        shared_memory_per_multiprocessor=shared * _KIB,
        shared_memory_per_block_optin=optin * _KIB,
        L2_cache_size=cache * _MIB,
        clock_rate=clock * 1000,
    )


CARDS = {capability: _card(capability) for capability in _DATA_SHEETS}


DEFAULT_CAPABILITY = "8.6"  # with bfloat16 and all other features of Ampere


def card(capability: str) -> Card:
    """Return the card of a compute capability such as "8.6". Raises `ValueError` if there is none."""
    if capability not in CARDS:
        raise ValueError(f"no card with compute capability {capability!r}; there are {', '.join(CARDS)}")
    return CARDS[capability]


def answers(torch: Any, card: Card) -> dict[str, Any]:
    """Return replacements for the functions about devices and their memory, by name."""
    return {
        **{name: fixed(value) for name, value in _VALUES.items()},
        **dict.fromkeys(_NOTHING, nothing),
        **{name: gap_function(f"torch.{name}") for name in _GAPS},
        **{name: gap_class(f"torch.{name}") for name in _GAP_CLASSES},
        **_properties(torch, card),
        **_memory(card),
        **_selection(torch),
        "cuda._lazy_init": _lazy_init(torch.cuda),
        "version.cuda": torch.version.cuda or "12.8",
    }


def _properties(torch: Any, card: Card) -> dict[str, Any]:
    def properties(device: Any = None) -> Card:
        _index(torch, device)
        return card

    return {
        "cuda.get_device_properties": properties,
        "cuda.get_arch_list": lambda: [f"sm_{card.arch}"],
        "accelerator.get_device_capability": lambda _device=None: {"supported_dtypes": set()},
    }


def _memory(card: Card) -> dict[str, Any]:
    """All memory of the card is free, because nothing is stored there."""

    def stats(device: Any = None) -> Any:  # noqa: ARG001 - torch's name
        # Callers read keys such as "allocated_bytes.all.peak"; an unused allocator has zeros.
        names = (f"{kind}_bytes.all.{when}" for kind in _KINDS for when in _WHEN)
        return collections.defaultdict(int, dict.fromkeys(names, 0))

    def info(_device: Any = None) -> tuple[int, int]:
        return card.total_memory, card.total_memory

    return {
        "cuda.mem_get_info": info,
        "cuda.memory_stats": stats,
        "cuda.memory_snapshot": lambda *_, **__: [],
        "cuda.memory._snapshot": lambda *_, **__: {"segments": [], "device_traces": []},
        "cuda.host_memory_stats": lambda: collections.defaultdict(int),
        "cuda.host_memory_stats_as_nested_dict": lambda *_: {},
        "accelerator.memory_stats": stats,
        "accelerator.get_memory_info": info,
        "_C._cuda_memoryStats": lambda _device=0: {},
    }


def _selection(torch: Any) -> dict[str, Any]:
    class device(contextlib.nullcontext[None]):  # noqa: N801 - stands for torch.cuda.device
        """Selects the one device. Accepts the CPU too, where the tensors really are."""

        def __init__(self, device: Any = None) -> None:
            super().__init__()
            self.idx = _index(torch, device)
            self.prev_idx = 0

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
        "accelerator.device_index": device,
        "accelerator.current_accelerator": current_accelerator,
    }


def _lazy_init(cuda: Any) -> Any:
    def lazy_init() -> None:
        # torch's C++ calls this itself to create a tensor on a device of type "cuda" that no replacement
        # redirected (torch/csrc/utils/device_lazy_init.cpp). Then the caller's own code does not name the
        # function, and the driver would fail next.
        caller = sys._getframe(1).f_code  # noqa: SLF001 - the only way to know the caller
        if not {"_lazy_init", "init"} & {*caller.co_names, *map(str, caller.co_consts)}:
            raise gap(f"{caller.co_name} at {caller.co_filename}:{sys._getframe(1).f_lineno}")  # noqa: SLF001
        cuda._initialized = True  # noqa: SLF001 - torch sets it, and torch.utils.checkpoint reads it

    return lazy_init


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
