"""Emulates the memory of the card: all of it is free, because nothing is stored there."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from .constants import constants
from .gaps import gap_class

if TYPE_CHECKING:
    from .device_profiles import Card


_COUNTERS = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
_VALUES = {
    **{f"{place}.{name}": 0 for place in ("cuda", "accelerator") for name in _COUNTERS},
    "cuda.memory_cached": 0,
    "cuda.max_memory_cached": 0,
    "cuda.device_memory_used": 0,
    "cuda.memory_usage": 0,
    "cuda.memory_summary": "the stand-in for CUDA allocates nothing",
    "cuda.list_gpu_processes": "no processes are running",
    "cuda.get_per_process_memory_fraction": 1.0,
    "cuda.get_allocator_backend": "native",
}
_NOTHING = (
    "cuda.empty_cache",
    "cuda.reset_peak_memory_stats",
    "cuda.reset_accumulated_memory_stats",
    "cuda.reset_max_memory_allocated",
    "cuda.reset_max_memory_cached",
    "cuda.reset_peak_host_memory_stats",
    "cuda.reset_accumulated_host_memory_stats",
    "cuda.set_per_process_memory_fraction",
    "cuda.memory._set_allocator_settings",
    "cuda.memory._record_memory_history",
    "accelerator.empty_cache",
    "accelerator.empty_host_cache",
    "accelerator.reset_peak_memory_stats",
    "accelerator.reset_accumulated_memory_stats",
    "_C._cuda_emptyCache",
    "_C._cuda_resetPeakMemoryStats",
    "_C._cuda_resetAccumulatedMemoryStats",
)
_GAPS = ("cuda.caching_allocator_alloc", "cuda.caching_allocator_delete")
_KINDS = ("allocated", "reserved", "active", "inactive_split", "requested")
_WHEN = ("current", "peak", "allocated", "freed")


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for the functions of `torch.cuda` and `torch.cuda.memory` about memory, by name."""

    def stats(_device: Any = None) -> Any:
        # Callers read keys such as "allocated_bytes.all.peak"; an unused allocator has zeros.
        names = (f"{kind}_bytes.all.{when}" for kind in _KINDS for when in _WHEN)
        return collections.defaultdict(int, dict.fromkeys(names, 0))

    def info(_device: Any = None) -> tuple[int, int]:
        return card.total_memory, card.total_memory

    return {
        **constants(_VALUES, _NOTHING, _GAPS),
        "cuda.mem_get_info": info,
        "cuda.memory_stats": stats,
        "cuda.memory_stats_as_nested_dict": lambda _device=None: {},
        "cuda.memory_snapshot": lambda *_, **__: [],
        "cuda.memory._snapshot": lambda *_, **__: {"segments": [], "device_traces": []},
        "cuda.host_memory_stats": lambda: collections.defaultdict(int),
        "cuda.host_memory_stats_as_nested_dict": lambda *_: {},
        "cuda.MemPool": gap_class("torch.cuda.MemPool"),
        "cuda.CUDAPluggableAllocator": gap_class("torch.cuda.CUDAPluggableAllocator"),
        "accelerator.memory_stats": stats,
        "accelerator.get_memory_info": info,
        "_C._cuda_memoryStats": lambda _device=0: {},
    }
