"""What a search needs of a prober, wherever that runs its probes; and several of them as one.

With several interpreters, each probe goes the one way of a probe with the prober of its own Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from harness.environment import Builder
    from harness.model import Observation
    from harness.probe import Prepared, Probe
    from harness.store import Store, StoredResolution


class Probing(Protocol):
    """What an investigation knows of a prober, whether its probes run here or elsewhere."""

    @property
    def store(self) -> Store:
        """Where observations are kept."""
        ...

    @property
    def builder(self) -> Builder:
        """Builds environments here, to look into them."""
        ...

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """The lock of a probe."""
        ...

    def known(self, probe: Probe) -> Observation | None:
        """What was observed of a probe before."""
        ...

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """A probe that is ready to run, or answered."""
        ...

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run what was prepared and keep what was observed."""
        ...


@frozen
class Probers:
    """Probers by the full version of their interpreter (`Combination.python`)."""

    by_python: Mapping[str, Probing]

    def known(self, probe: Probe) -> Observation | None:
        """What was observed of a probe before, by the store alone; None if that is not there."""
        return self.by_python[probe.combination.python].known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Lock and environment, or an answer without a run."""
        return self.by_python[probe.combination.python].prepare(probe, cancel=cancel)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run what was prepared. Raises `Cancelled` when `cancel` is set."""
        return self.by_python[prepared.probe.combination.python].execute(prepared, cancel=cancel)
