"""The time budget of a night, in minutes of wall time and GPU time, and the reporter that enforces it."""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field, frozen

from harness.events import Asked, Event, Judged, Reporter, Started
from harness.model import Device, Observation


@define
class Budget:
    """The time that a night may use. `clock` is monotonic, in seconds; None minutes means no limit."""

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
        """Count a run that has just ended."""
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


def _share(seconds: float, minutes: float | None) -> float:
    if minutes is None:
        return 0.0
    return seconds / (minutes * 60) if minutes > 0 else math.inf


class OutOfTimeError(Exception):
    """The time budget ran out during the search for a cause. Finished runs are kept; the next night continues."""


@frozen
class BudgetedReporter:
    """A reporter that counts a search's runs on a device, and stops the search when the budget is spent."""

    inner: Reporter
    budget: Budget
    device: Device

    def report(self, event: Event) -> None:
        """Pass an event on. Raises `OutOfTimeError` before another run starts."""
        match event:
            case Asked() | Started() if self.budget.is_spent(self.device):
                raise OutOfTimeError
            case Judged(observation=observation, cached=False):
                self.budget.used(observation)
        self.inner.report(event)
