"""Makes a run wait for what it needs: GPUs of its own with enough free memory, and room in the machine's memory.

A lease of a GPU is a file lock named after it. It works between the lanes of this process and between all harness
processes that share a cache folder, and the system releases it if the process dies.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import define, evolve, field, frozen

from harness.events import SILENT, Note, Reporter
from harness.model.repro import GpuNeed
from harness.model.text import counted, size_in_words
from harness.run.devices import Gpu, find_gpus
from harness.run.locks import Busy, acquire
from harness.run.process import pause

_WAIT_S = 600.0
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
    def lease(self, needed: GpuNeed) -> Iterator[Gpu | None]:
        """Lease GPUs with free memory until the context ends: the first, with the others `beside` it.

        None if the pool has no GPUs. Raises `NoGpu` if not enough were free in time, and `Cancelled`.
        """
        with contextlib.ExitStack() as held:
            yield self._wait(needed, held) if self.gpus else None

    def _wait(self, needed: GpuNeed, held: contextlib.ExitStack) -> Gpu:
        left_s, is_noted = self.wait_s, False
        what = "a GPU" if needed.count == 1 else f"{needed.count} GPUs"
        while True:
            pause()
            listed = self._listed()
            if why := _never(needed, self.gpus):
                raise NoGpu(why)
            leased: list[Gpu] = []
            in_use = False
            for gpu in listed:
                try:
                    lock = acquire(self.locks / f"{gpu.lock_name}.lock", wait=False)
                except Busy:
                    in_use = True
                    continue
                if gpu.free >= needed.free or not gpu.memory:  # a GPU that shares the machine's memory reports none
                    held.enter_context(lock)
                    leased.append(gpu)
                else:
                    lock.release()
                if len(leased) == needed.count:
                    return evolve(leased[0], beside=tuple(leased[1:]))
            held.close()
            shortage = f"{_needs(needed)}, {_free(listed, needed)}"
            if not in_use and left_s <= 0:
                raise NoGpu(f"{shortage}, for {self.wait_s:g} s")
            if not is_noted:
                is_noted = True
                self.reporter.report(Note(f"waiting for {what}: {'another probe runs' if in_use else shortage}"))
            left_s -= 0.0 if in_use else self.look_s
            pause(self.look_s)

    def _listed(self) -> tuple[Gpu, ...]:
        """The current state of the pool's GPUs, the one with the most free memory first."""
        wanted = {gpu.address for gpu in self.gpus}
        gpus = [gpu for gpu in self.find() if gpu.address in wanted]
        return tuple(sorted(gpus, key=lambda gpu: (-gpu.free, gpu.index)))


def _never(needed: GpuNeed, gpus: tuple[Gpu, ...]) -> str:
    """Say why these GPUs are not what a run needs, however long it waits; "" if they may be."""
    if len(gpus) < needed.count:
        return f"{needed.count} GPUs of one model are needed, this machine has {counted(len(gpus), 'such GPU')}"
    largest = sorted(gpus, key=lambda gpu: -gpu.memory)[needed.count - 1]
    if all(gpu.memory for gpu in gpus) and largest.memory < needed.free:
        return f"{largest} has {size_in_words(largest.memory)}, {_needs(needed)}"
    return ""


def _needs(needed: GpuNeed) -> str:
    return f"{size_in_words(needed.free)} are needed" + (f" on {needed.count} GPUs" if needed.count > 1 else "")


def _free(listed: tuple[Gpu, ...], needed: GpuNeed) -> str:
    if len(listed) < needed.count:
        return "no GPU is listed any more" if not listed else f"only {counted(len(listed), 'GPU')} listed"
    gpu = listed[needed.count - 1]
    return f"{gpu} has {size_in_words(gpu.free)} of memory free"


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
