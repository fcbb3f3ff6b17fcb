"""The values for one probe: what to run, and the probe once it is prepared or has its observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

if TYPE_CHECKING:
    from harness.environment import Environment
    from harness.model import Combination, Lock, Mixture, Observation, Repro


@frozen
class Probe:
    """One run to make: a repro with a combination. `attempt` counts repetitions from 0.

    Each attempt has another seed for Python's hashes, so that repetitions are independent; `hash_seed` repeats a known
    one. The combination is resolved near the lock `near`, if it is given; with `lock`, nothing is resolved. `mixture`
    exchanges files of the environment. `trace` names installed files whose execution is recorded.
    """

    repro: Repro
    combination: Combination
    near: Lock | None = None
    attempt: int = 0
    mixture: Mixture | None = None
    trace: frozenset[str] | None = None
    lock: Lock | None = None
    hash_seed: int | None = None


@frozen
class Prepared:
    """A probe that is ready to run, or already has its `observation`; `cached` means that it is from the store.

    `key` identifies the observation in the store, `drift` says where its lock differs from the requested
    holds, and `setup_s` is how many seconds the preparation took.
    """

    probe: Probe
    key: str
    environment: Environment | None = None
    drift: tuple[str, ...] = ()
    observation: Observation | None = None
    cached: bool = False
    setup_s: float = 0.0


def next_attempt(probe: Probe) -> Probe:
    """Return the next repetition of a probe."""
    return evolve(probe, attempt=probe.attempt + 1)
