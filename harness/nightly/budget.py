"""The budget of a night: minutes of wall time and of GPU time, by a clock that is given, and how a search keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field, frozen

from harness.events import Asked, Event, Judged, Reporter, Started
from harness.model import Device, Observation


@define
class Budget:
    """What may be spent. `clock` gives seconds that never go back; None minutes are without end."""

    clock: Callable[[], float]
    minutes: float | None = None
    gpu_minutes: float | None = None
    gpu_s: float = 0.0
    ran: int = 0
    _begun: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def wall_s(self) -> float:
        """Seconds since it began."""
        return self.clock() - self._begun

    def used(self, observation: Observation) -> None:
        """Count a run that was made just now."""
        self.ran += observation.outcome.ran
        if observation.device is Device.CUDA:
            self.gpu_s += observation.duration_s

    def share(self, device: Device) -> float:
        """How much is used of what a run on a device takes of, 1.0 for all; the larger share of time and GPU time."""
        on_gpu = _share(self.gpu_s, self.gpu_minutes) if device is Device.CUDA else 0.0
        return max(_share(self.wall_s, self.minutes), on_gpu)

    def is_spent(self, device: Device) -> bool:
        """Whether nothing more may be begun on a device."""
        return self.share(device) >= 1.0


def _share(seconds: float, minutes: float | None) -> float:
    if minutes is None:
        return 0.0
    return seconds / (minutes * 60) if minutes > 0 else math.inf


class OutOfTimeError(Exception):
    """The budget is spent while a cause is searched; what was run is kept, and the next night goes on."""


@frozen
class Timed:
    """A reporter that counts the runs of a search on a device, and ends it when the budget is spent."""

    inner: Reporter
    budget: Budget
    device: Device

    def report(self, event: Event) -> None:
        """Pass an event on. Raises `OutOfTimeError` before anything more is begun."""
        match event:
            case Asked() | Started() if self.budget.is_spent(self.device):
                raise OutOfTimeError
            case Judged(observation=observation, cached=False):
                self.budget.used(observation)
        self.inner.report(event)
