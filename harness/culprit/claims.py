"""Claims: what a counterfactual is expected to show, run in a fresh process that no search has seen."""

from __future__ import annotations

import threading

from attrs import frozen

from harness.model import Observation, Verdict
from harness.probe import Prepared, Probe, next_attempt
from harness.scheduling.probers import Probing


@frozen
class Claim:
    """What a counterfactual is expected to show, and the sentence that says so."""

    sentence: str
    probe: Probe
    expected: Verdict


@frozen
class Unseen:
    """A prober whose probes are repetitions of those that were `seen`, by their keys."""

    prober: Probing
    seen: frozenset[str]

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """The first repetition of a probe that was not seen."""
        prepared = self.prober.prepare(probe, cancel=cancel)
        while prepared.key in self.seen:
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe, cancel=cancel)
        return prepared

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """As the prober."""
        return self.prober.execute(prepared, cancel=cancel)
