"""Who is told how a night goes on, and how the budget is kept while a cause is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import define, field

from harness.bisect.investigate import Watcher
from harness.culprit.release_search import Progress
from harness.model import Device, Judgement, Observation, Release, Signature
from harness.model.culprit import Level
from harness.model.step import Step

if TYPE_CHECKING:
    from harness.matrix.running import CellWatcher
    from harness.nightly.budget import Budget
    from harness.search import Trial


class NightWatcher(Protocol):
    """Who is told."""

    def say(self, sentence: str) -> None:
        """Something happened that a person may want to know now."""
        ...

    @property
    def cells(self) -> CellWatcher:
        """Who is told how cells run."""
        ...

    @property
    def levels(self) -> Watcher:
        """Who is told how a cause is searched."""
        ...


class OutOfTimeError(Exception):
    """The budget is spent while a cause is searched; what was run is kept, and the next night goes on."""


@define
class Timed(Watcher):
    """Passes on what it is told, counts runs, notes the last bisection, and raises when the budget is spent."""

    inner: Watcher
    budget: Budget
    device: Device
    _progress: Progress | None = field(default=None, init=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The releases that the last bisection judged."""
        return tuple(self._progress.record.steps) if self._progress else ()

    @property
    def releases(self) -> tuple[Release, ...]:
        """Those that it chose from."""
        return self._progress.plan.releases if self._progress else ()

    def begin(self, progress: Progress) -> None:
        """Note the bisection."""
        self._progress = progress
        self.inner.begin(progress)

    def captured(self, signature: Signature) -> None:
        """Pass it on."""
        self.inner.captured(signature)

    def preparing(self, candidate: Trial) -> None:
        """Pass it on, in time."""
        self._check()
        self.inner.preparing(candidate)

    def running(self, candidate: Trial) -> None:
        """Pass it on."""
        self.inner.running(candidate)

    def told(self, candidate: Trial, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Count it and pass it on."""
        self._count(observation, cached=cached)
        self.inner.told(candidate, judgement, observation, cached=cached)

    def level(self, level: Level, sentence: str) -> None:
        """Pass it on."""
        self.inner.level(level, sentence)

    def trying(self, label: str) -> None:
        """Pass it on, in time."""
        self._check()
        self.inner.trying(label)

    def tried(self, label: str, judgement: Judgement, observation: Observation, *, cached: bool, left: str) -> None:
        """Count it and pass it on."""
        self._count(observation, cached=cached)
        self.inner.tried(label, judgement, observation, cached=cached, left=left)

    def _count(self, observation: Observation, *, cached: bool) -> None:
        if not cached:
            self.budget.used(observation)

    def _check(self) -> None:
        if self.budget.is_spent(self.device):
            raise OutOfTimeError
