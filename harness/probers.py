"""Several interpreters at once: each probe goes the one way of a probe, with the prober of its own Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from harness.model import Observation
    from harness.probe import Prepared, Probe, Prober


@frozen
class Probers:
    """Probers by the full version of their interpreter (`Combination.python`)."""

    by_python: Mapping[str, Prober]

    def known(self, probe: Probe) -> Observation | None:
        """What was observed of a probe before, by the store alone; None where that is not there."""
        return self.by_python[probe.combination.python].known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Lock and environment, or an answer without a run."""
        return self.by_python[probe.combination.python].prepare(probe, cancel=cancel)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run what was prepared. Raises `Cancelled` when `cancel` is set."""
        return self.by_python[prepared.probe.combination.python].execute(prepared, cancel=cancel)
