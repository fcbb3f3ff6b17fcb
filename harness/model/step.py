"""A step of a search: one candidate that was judged, as answers list it."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from harness.model.verdict import Verdict


@frozen
class Step:
    """One judged release. `seconds` is the run's duration, 0 if nothing ran."""

    release: str
    verdict: Verdict
    reason: str
    observation: str
    cached: bool
    seconds: float
    attempt: int = 0

    def as_json(self) -> dict[str, Any]:
        """The step as answers print it."""
        return {
            "release": self.release,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "observation": self.observation,
            "cached": self.cached,
            "seconds": self.seconds,
            **({"attempt": self.attempt} if self.attempt else {}),
        }
