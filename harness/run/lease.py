"""Makes a run wait for what it needs: a GPU of its own with enough free memory, and room in the machine's memory.

A lease of a GPU is a file lock named after it. It works between the lanes of this process and between all harness
processes that share a cache folder, and the system releases it if the process dies.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import define, field, frozen

from harness.events import SILENT, Note, Reporter
from harness.model.text import size_in_words
from harness.run.devices import Gpu, find_gpus
from harness.run.locks import Busy, acquire
from harness.run.process import pause

_WAIT_S = 600.0
# A CUDA context with library workspaces takes several hundred MiB before the first tensor.
DEFAULT_NEED = 2**30
_LOOK_S = 2.0  # nvidia-smi itself may take a second
_EXPECTED = 4 * 2**30  # bytes per run, until the peak of a run is known
_LOOK_AT_MEMORY_S = 0.25


class NoGpu(Exception):
    """No GPU was available; the message says why in one sentence."""


@frozen
class GpuPool:
    """The GPUs that probes may use. `locks` is the folder of their file locks.

    `wait_s` limits the wait for memory that others use, in seconds, but not the wait for another probe to end; the pool
    looks again every `look_s`. `reporter` receives a note when a wait begins.
    """

    gpus: tuple[Gpu, ...]
    locks: Path
    reporter: Reporter = SILENT
    find: Callable[[], tuple[Gpu, ...]] = find_gpus
    wait_s: float = _WAIT_S
    look_s: float = _LOOK_S

    @contextlib.contextmanager
    def lease(self, needed: int) -> Iterator[Gpu | None]:
        """Lease a GPU with `needed` bytes of free memory until the context ends; None if the pool has no GPUs.

        Raises `NoGpu` if none was free in time, and `Cancelled`.
        """
        with contextlib.ExitStack() as held:
            yield self._wait(needed, held) if self.gpus else None

    def _wait(self, needed: int, held: contextlib.ExitStack) -> Gpu:
        left_s, is_noted = self.wait_s, False
        while True:
            pause()
            listed = self._listed()
            if listed and all(0 < gpu.memory < needed for gpu in listed):
                largest = max(listed, key=lambda gpu: gpu.memory)
                raise NoGpu(f"{largest} has {size_in_words(largest.memory)}, {size_in_words(needed)} are needed")
            in_use = False
            for gpu in listed:
                try:
                    held.enter_context(acquire(self.locks / f"{gpu.lock_name}.lock", wait=False))
                except Busy:
                    in_use = True
                    continue
                if gpu.free >= needed or not gpu.memory:  # a GPU that shares the machine's memory reports none
                    return gpu
                held.close()
            shortage = f"{size_in_words(needed)} are needed, {_free(listed)}"
            if not in_use and left_s <= 0:
                raise NoGpu(f"{shortage}, for {self.wait_s:g} s")
            if not is_noted:
                is_noted = True
                self.reporter.report(Note(f"waiting for a GPU: {'another probe runs' if in_use else shortage}"))
            left_s -= 0.0 if in_use else self.look_s
            pause(self.look_s)

    def _listed(self) -> tuple[Gpu, ...]:
        """The current state of the pool's GPUs, the one with the most free memory first."""
        wanted = {gpu.address for gpu in self.gpus}
        gpus = [gpu for gpu in self.find() if gpu.address in wanted]
        return tuple(sorted(gpus, key=lambda gpu: (-gpu.free, gpu.index)))


def _free(listed: tuple[Gpu, ...]) -> str:
    return f"{listed[0]} has {size_in_words(listed[0].free)} of memory free" if listed else "no GPU is listed any more"


def _available() -> int:
    import psutil  # type: ignore[import-untyped,unused-ignore]  # imported late: most commands run nothing

    return int(psutil.virtual_memory().available)


@define
class MemoryGate:
    """Lets a run start if no other one is running, or if there is enough available memory for all of them.

    Each run is expected to need as much as the largest one so far. `available` returns the available memory in bytes.
    """

    available: Callable[[], int] = _available
    _largest: int = field(default=0, init=False)
    _running: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Wait for memory, and reserve it as long as the context lasts. Raises `Cancelled`."""
        while not self._has_room():
            pause(_LOOK_AT_MEMORY_S)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def _has_room(self) -> bool:
        """Reserve memory for another run; returns whether there was enough."""
        with self._lock:
            # Runs may not have allocated most of their memory yet, so there must be enough for all of them.
            if self._running and self.available() < (self._running + 1) * (self._largest or _EXPECTED):
                return False
            self._running += 1
            return True

    def note(self, peak: int) -> None:
        """Record the peak memory of a run, in bytes."""
        self._largest = max(self._largest, peak)
