"""Reads the stored runs of a probe and its repetitions."""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING

from attrs import evolve

if TYPE_CHECKING:
    from typing import Protocol

    from harness.model import Observation
    from harness.probe.asked import Probe

    class Knows(Protocol):
        """Looks up observations in the store, without a run."""

        def known(self, probe: Probe) -> Observation | None:
            """Return an earlier observation of a probe, or None."""
            ...


def known_attempts(probe: Probe, knows: Knows) -> list[Observation]:
    """Return the stored runs of a probe and its repetitions, in order, up to the first that is missing."""
    attempts = (knows.known(evolve(probe, attempt=attempt)) for attempt in count())
    return [seen for seen in takewhile(lambda seen: seen is not None, attempts) if seen is not None]
