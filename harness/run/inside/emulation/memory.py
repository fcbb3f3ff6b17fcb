"""The card's memory: all of it is free, because nothing is stored there."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from .gaps import gap_class, gap_function

if TYPE_CHECKING:
    from .device_profiles import Card


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - one shape for every module of answers
    """Answers of `torch.cuda` and `torch.cuda.memory` about bytes."""

    def zero(_device: Any = None) -> int:
        return 0

    def nothing(*_: Any, **__: Any) -> None:
        """Nothing to do: no allocator keeps anything."""

    def stats(_device: Any = None) -> Any:
        # Callers read keys such as "allocated_bytes.all.peak"; an unused allocator has zeros.
        names = (f"{kind}_bytes.all.{when}" for kind in _KINDS for when in _WHEN)
        return collections.defaultdict(int, dict.fromkeys(names, 0))

    def info(_device: Any = None) -> tuple[int, int]:
        return card.total_memory, card.total_memory

    counters = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    others = ("memory_cached", "max_memory_cached", "device_memory_used")
    resets = ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated")
    return {
        **{f"cuda.{name}": zero for name in (*counters, *others)},
        **{f"cuda.{name}": nothing for name in (*resets, "reset_max_memory_cached", "empty_cache")},
        **{f"accelerator.{name}": zero for name in counters},
        **{f"accelerator.{name}": nothing for name in (*resets[:2], "empty_cache")},
        "cuda.mem_get_info": info,
        "cuda.memory_usage": zero,
        "cuda.memory_stats": stats,
        "cuda.memory_stats_as_nested_dict": lambda _device=None: {},
        "cuda.memory_snapshot": lambda *_, **__: [],
        "cuda.memory_summary": lambda *_, **__: "the stand-in for CUDA allocates nothing",
        "cuda.list_gpu_processes": lambda _device=None: "no processes are running",
        "cuda.get_per_process_memory_fraction": lambda _device=None: 1.0,
        "cuda.set_per_process_memory_fraction": nothing,
        "cuda.get_allocator_backend": lambda: "native",
        "cuda.memory._set_allocator_settings": nothing,
        "cuda.memory._record_memory_history": nothing,
        "cuda.memory._snapshot": lambda *_, **__: {"segments": [], "device_traces": []},
        "cuda.host_memory_stats": lambda: collections.defaultdict(int),
        "cuda.reset_peak_host_memory_stats": nothing,
        "cuda.reset_accumulated_host_memory_stats": nothing,
        "cuda.host_memory_stats_as_nested_dict": lambda *_: {},
        "accelerator.empty_host_cache": nothing,
        "cuda.caching_allocator_alloc": gap_function("torch.cuda.caching_allocator_alloc"),
        "cuda.caching_allocator_delete": gap_function("torch.cuda.caching_allocator_delete"),
        "cuda.MemPool": gap_class("torch.cuda.MemPool"),
        "cuda.CUDAPluggableAllocator": gap_class("torch.cuda.CUDAPluggableAllocator"),
        "accelerator.memory_stats": stats,
        "accelerator.get_memory_info": info,
        "_C._cuda_emptyCache": nothing,
        "_C._cuda_memoryStats": lambda _device=0: {},
        "_C._cuda_resetPeakMemoryStats": nothing,
        "_C._cuda_resetAccumulatedMemoryStats": nothing,
    }


_KINDS = ("allocated", "reserved", "active", "inactive_split", "requested")
_WHEN = ("current", "peak", "allocated", "freed")
