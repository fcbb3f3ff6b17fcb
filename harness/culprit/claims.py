"""Claims: counterfactuals with their expected verdict, proved by runs that no search has used."""

from __future__ import annotations

import threading

from attrs import frozen

from harness.model import Observation, Verdict
from harness.probe import Prepared, Probe, next_attempt
from harness.probe.probe import Probing


@frozen
class Claim:
    """A counterfactual to prove: the sentence that describes it, its probe, and the expected verdict."""

    sentence: str
    probe: Probe
    expected: Verdict


@frozen
class Unseen:
    """A prober that never returns a seen run: it repeats a probe whose key is in `seen`."""

    prober: Probing
    seen: frozenset[str]

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Prepare the first repetition of the probe that was not seen."""
        prepared = self.prober.prepare(probe, cancel=cancel)
        while prepared.key in self.seen:
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe, cancel=cancel)
        return prepared

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run it with the wrapped prober."""
        return self.prober.execute(prepared, cancel=cancel)
