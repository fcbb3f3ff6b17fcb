"""The interface of a prober, local or remote, and a prober that chooses between several by interpreter."""

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
    """A prober whose probes run on this machine or on others: `Prober`, `ForkingProber`, `ClusterProber`.

    Another executor for other machines needs no prober of its own, only a module in `harness/scheduling/cluster`.
    """

    @property
    def store(self) -> Store:
        """Where observations are kept."""
        ...

    @property
    def builder(self) -> Builder:
        """Builds environments on this machine, to inspect them."""
        ...

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """Return the lock of a probe."""
        ...

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe, or None."""
        ...

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Prepare a probe to run, or return its observation without a run."""
        ...

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run a prepared probe and store the observation."""
        ...


@frozen
class Probers:
    """Probers by the full version of their interpreter; a probe goes to the one of its `Combination.python`."""

    by_python: Mapping[str, Probing]

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe from the store, or None."""
        return self.by_python[probe.combination.python].known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Resolve a probe and build its environment, or return an observation without a run."""
        return self.by_python[probe.combination.python].prepare(probe, cancel=cancel)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run a prepared probe. Raises `Cancelled` when `cancel` is set."""
        return self.by_python[prepared.probe.combination.python].execute(prepared, cancel=cancel)
