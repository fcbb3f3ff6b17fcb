"""In which order the cells of a night run, and for how long."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, TypeVar

from attrs import define, field
from packaging.version import Version

from harness.matrix.cells import PACKAGES
from harness.model import Device, Observation
from harness.probing.lanes import Lanes, Needs, Priority, Task
from harness.watch.record import Past, version_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.matrix import Cell


T = TypeVar("T")

_NO_VERSION = Version("0")


def in_order(cells: Iterable[Cell], past: Past) -> tuple[Cell, ...]:
    """Sort cells: those that the last night left first, those never judged last, with older releases before newer ones.

    So when a new release runs, the older release that it is compared with already has a verdict.
    """
    rank = {name: position for position, name in enumerate(past.left)}

    def key(cell: Cell) -> tuple[int, bool, tuple[Version, ...]]:
        is_new = cell.name not in past.cells
        axes = sorted(axis for axis in cell.choice if axis.startswith(PACKAGES)) if is_new else []
        return (
            rank.get(cell.name, len(rank)),
            is_new,
            tuple(version_on(cell.choice, axis) or _NO_VERSION for axis in axes),
        )

    return tuple(sorted(cells, key=key))


class OutOfTimeError(Exception):
    """The time budget ran out during the search for a cause. Finished runs are kept; the next night continues."""


@define
class Budget:
    """The time that a night may use. `clock` is monotonic, in seconds; None minutes means no limit."""

    clock: Callable[[], float]
    minutes: float | None = None
    gpu_minutes: float | None = None
    gpu_s: float = 0.0
    ran: int = 0
    _begun: float = field(init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def wall_s(self) -> float:
        """Seconds since it began."""
        return self.clock() - self._begun

    def used(self, observation: Observation) -> None:
        """Count a run that has just ended."""
        with self._lock:  # lanes are threads
            self.ran += observation.outcome.ran
            if observation.device is Device.CUDA:
                self.gpu_s += observation.duration_s

    def share(self, device: Device) -> float:
        """Return the used share of the budget, 1.0 for all of it; on a GPU, the larger of wall time and GPU time."""
        on_gpu = _share(self.gpu_s, self.gpu_minutes) if device is Device.CUDA else 0.0
        return max(_share(self.wall_s, self.minutes), on_gpu)

    def is_spent(self, device: Device) -> bool:
        """Whether no more runs may start on a device."""
        return self.share(device) >= 1.0

    def check(self, device: Device) -> None:
        """Raise `OutOfTimeError` if no more runs may start on a device."""
        if self.is_spent(device):
            raise OutOfTimeError


class BudgetedLanes(Lanes):
    """Lanes that count their runs against a budget; once it is spent for `device`, none starts (None: no limit)."""

    def __init__(self, inner: Lanes, budget: Budget, device: Device | None = None) -> None:
        super().__init__(inner.count)
        self.inner, self.budget, self.device = inner, budget, device

    def submit(self, call: Callable[[], T], priority: Priority = Priority.ASKED, needs: Needs = Needs.LANE) -> Task[T]:
        """Start a run on the lanes within. Raises `OutOfTimeError`."""
        if self.device is not None:
            self.budget.check(self.device)

        def counted() -> T:
            ended = call()
            if isinstance(ended, Observation):
                self.budget.used(ended)
            return ended

        return self.inner.submit(counted, priority, needs)


def _share(seconds: float, minutes: float | None) -> float:
    if minutes is None:
        return 0.0
    return seconds / (minutes * 60) if minutes > 0 else math.inf
