"""A shorter time limit for runs of the failing tests, so that a hanging test does not use up the whole limit. Pure."""

from __future__ import annotations

from attrs import evolve

from harness.model import Repro

# Fixed steps, so that the same question asked again gets the same limit and finds its answers in the store.
_STEPS_S = (60.0, 120.0, 240.0)
_TIMES_LONGER = 10


def soon_stopped(repro: Repro, seconds: float) -> Repro:
    """Return the repro with a limit of at least ten times `seconds`, its duration at the good end.

    The limit is 1, 2 or 4 minutes, and never longer than the repro's own. A new limit changes the digest, because a
    run that timed out says nothing about a longer limit.
    """
    limit = next((step for step in _STEPS_S if step >= _TIMES_LONGER * seconds), repro.timeout)
    if limit >= repro.timeout:
        return repro
    return evolve(repro, timeout=limit, digest=f"{repro.digest}-{limit:g}")
