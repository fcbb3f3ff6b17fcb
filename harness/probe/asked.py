"""A probe to run, and a probe that is prepared or already answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

if TYPE_CHECKING:
    from harness.environment import Environment
    from harness.model import Combination, Lock, Mixture, Observation, Repro


@frozen
class Probe:
    """One thing to try: a repro with a combination, near a lock; `attempt` counts repetitions from 0.

    `mixture` exchanges files of the environment; `trace` names installed files whose execution is recorded; with
    `lock`, nothing is resolved.
    """

    repro: Repro
    combination: Combination
    near: Lock | None = None
    attempt: int = 0
    mixture: Mixture | None = None
    trace: frozenset[str] | None = None
    lock: Lock | None = None


@frozen
class Prepared:
    """A probe that is ready to run, or already answered by `observation` (`cached`: from the store)."""

    probe: Probe
    key: str
    environment: Environment | None = None
    drift: tuple[str, ...] = ()
    observation: Observation | None = None
    cached: bool = False
    setup_s: float = 0.0


def next_attempt(probe: Probe) -> Probe:
    """The next repetition of the probe."""
    return evolve(probe, attempt=probe.attempt + 1)
