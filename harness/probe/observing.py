"""Makes the records of probes: their keys in the store, and observations of probes that ran or could not run."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harness.model import Device, Observation
from harness.store import observation_key

if TYPE_CHECKING:
    from harness.model import Combination, Lock, Outcome
    from harness.probe.asked import Probe
    from harness.run.devices import Gpu
    from harness.run.result import Ran


def probe_key(probe: Probe, lock: Lock, *, gpus: tuple[Gpu, ...], capability: str, rights: str = "") -> str:
    """The key of a probe's observation on these GPUs, or with this emulated capability.

    `rights` says what a run was allowed beyond the default ("network", "unsandboxed"); a run with more rights has
    another key.
    """
    device = probe.combination.device
    machine = gpus[0].name if device is Device.CUDA and gpus else ""
    if device is Device.EMULATED:
        machine = f"capability {capability}"
    mixture = f"{probe.mixture.id if probe.mixture else ''}{_traced(probe.trace)}{'+' if rights else ''}{rights}"
    return observation_key(lock, probe.repro, device, machine=machine, attempt=probe.attempt, mixture=mixture)


def _traced(files: frozenset[str] | None) -> str:
    """The part of a key for the traced files, "" for a run without a trace."""
    if files is None:
        return ""
    return f"+trace{hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:12]}"


def unresolvable_key(probe: Probe) -> str:
    """The key of an observation that no lock meets the requirements."""
    return f"{probe.combination.resolution_key}-{probe.repro.digest[:6]}"


def observation_of(
    probe: Probe,
    lock: Lock,
    ran: Ran,
    *,
    key: str,
    drift: tuple[str, ...],
    setup_s: float,
    started: str,
    log: str,
) -> Observation:
    """The record of a run: `lock` is what was installed, `started` an ISO 8601 time, `log` relative to the results."""
    return Observation(
        key=key,
        outcome=ran.outcome,
        repro=probe.repro.name,
        repro_digest=probe.repro.digest,
        device=probe.combination.device,
        detail=ran.detail,
        exception=ran.exception,
        exit_code=ran.exit_code,
        metrics=dict(ran.metrics),
        params=probe.repro.params,
        lock=lock,
        requirements=probe.combination.requirements,
        as_of=probe.combination.as_of.isoformat() if probe.combination.as_of else None,
        drift=drift,
        machine=dict(ran.machine),
        loaded={name: tuple(files) for name, files in ran.loaded.items()},
        duration_s=round(ran.duration_s, 3),
        setup_s=round(setup_s, 3),
        peak_memory=ran.peak_memory,
        started=started,
        attempt=probe.attempt,
        log=log,
        mixture=probe.mixture.label if probe.mixture else "",
        trace=ran.trace,
        tests=ran.tests,
        mistake=ran.mistake,
    )


def observation_without_run(
    probe: Probe, key: str, outcome: Outcome, words: str, lock: Lock | None, *, setup_s: float
) -> Observation:
    """The observation of a probe that did not run, with the reason in `words`; `setup_s` is in seconds."""
    return Observation(
        key=key,
        outcome=outcome,
        repro=probe.repro.name,
        repro_digest=probe.repro.digest,
        device=probe.combination.device,
        detail=f"{outcome.value}: {words}" if words else outcome.value,
        params=probe.repro.params,
        lock=lock,
        requirements=probe.combination.requirements,
        as_of=probe.combination.as_of.isoformat() if probe.combination.as_of else None,
        setup_s=round(setup_s, 3),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        attempt=probe.attempt,
        mixture=probe.mixture.label if probe.mixture else "",
    )


def question_of(combination: Combination) -> dict[str, Any]:
    """A question to the resolver as plain data, for readers of the store."""
    return {
        "python": combination.python,
        "requirements": combination.requirements,
        "holds": combination.holds,
        "as_of": combination.as_of.isoformat() if combination.as_of else None,
        "near": combination.near,
        "asked": datetime.now(UTC).isoformat(timespec="seconds"),
    }
