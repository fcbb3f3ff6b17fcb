"""A step of a search: one candidate and its verdict, as listed in an answer."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from harness.model.verdict import Verdict


@frozen
class Step:
    """One release and its verdict. `seconds` is the duration of the run, 0 if nothing ran."""

    release: str
    verdict: Verdict
    reason: str
    observation: str
    cached: bool
    seconds: float
    attempt: int = 0

    def as_json(self) -> dict[str, Any]:
        """The step in the JSON of answers."""
        return {
            "release": self.release,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "observation": self.observation,
            "cached": self.cached,
            "seconds": self.seconds,
            **({"attempt": self.attempt} if self.attempt else {}),
        }
