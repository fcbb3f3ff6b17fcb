"""The cards that the stand-in can emulate, one for each compute capability.

Packages branch on the capability (bfloat16 from 8.0, fp8 from 8.9), a few on memory and multiprocessors. The numbers
come from the cards' data sheets and from "Technical specifications per compute capability" in the CUDA C++ programming
guide.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from .gaps import Incomplete

_MIB = 1024 * 1024
_KIB = 1024
_NO_UUID = uuid.UUID(int=0)


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

# The default has bfloat16 and all other features of Ampere.
DEFAULT_CAPABILITY = "8.6"


def card(capability: str) -> Card:
    """Return the card of a compute capability such as "8.6". Raises `ValueError` if there is none."""
    if capability not in CARDS:
        raise ValueError(f"no card with compute capability {capability!r}; there are {', '.join(CARDS)}")
    return CARDS[capability]
