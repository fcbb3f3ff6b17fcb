"""How long a run of the tests in question may take: a hanging test would else cost the whole limit each time. Pure."""

from __future__ import annotations

from attrs import evolve

from harness.model import Repro

# In steps, so that a question that is asked again finds its answers in the store.
_STEPS_S = (60.0, 120.0, 240.0)
_TIMES_LONGER = 10


def soon_stopped(repro: Repro, seconds: float) -> Repro:
    """The repro with a time limit of about ten times what it took where it works (`seconds`), at least a minute.

    A repro with another limit is another one, as a run that was stopped says nothing for a longer limit.
    """
    limit = next((step for step in _STEPS_S if step >= _TIMES_LONGER * seconds), repro.timeout)
    if limit >= repro.timeout:
        return repro
    return evolve(repro, timeout=limit, digest=f"{repro.digest}-{limit:g}")
