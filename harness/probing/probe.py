"""A probe as a value: what to run, what runs it, its key in the store, and the observation that it becomes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, frozen

from harness.environment import CannotBuild
from harness.errors import HarnessError
from harness.model import Combination, Device, Lock, Mixture, Observation, Outcome, Repro
from harness.model.text import size_in_words
from harness.run.process import Cancelled
from harness.run.result import as_the_bug
from harness.run.runner import Terms
from harness.store import Store, observation_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.environment import Builder, Environment, Resolution
    from harness.probing.prober import Prober
    from harness.run.devices import Gpu
    from harness.run.forks import Zygote
    from harness.run.result import Ran

_OTHERS_NEED = 2**30  # bytes; a driver takes some hundred MiB for itself
_RECORDED = "exception exit_code metrics machine loaded peak_memory trace tests mistake wrote outside"


@frozen
class Probe:
    """One run to make: a repro with a combination. `attempt` counts repetitions from 0.

    Each attempt has another seed for Python's hashes, and another path to its environment, so that repetitions are
    independent (see `seed_of`); `hash_seed` repeats those of a known run. The combination is resolved near the lock
    `near`, if it is given; with `lock`, nothing is resolved. `mixture` exchanges files of the environment. `trace`
    names installed files whose execution is recorded. `inside` is the interpreter of an existing environment to run in
    as it is; its runs are never taken from the store. A run that will be claimed is `fresh`: it is not forked.
    `records_imports` says that what its modules import is recorded, so that other runs can be forked. One that may not
    be needed is prepared `ahead`, without an environment for which there is nothing to download.
    """

    repro: Repro
    combination: Combination
    near: Lock | None = None
    attempt: int = 0
    mixture: Mixture | None = None
    trace: frozenset[str] | None = None
    lock: Lock | None = None
    hash_seed: int | None = None
    inside: Path | None = None
    fresh: bool = False
    records_imports: bool = False
    ahead: bool = False


@frozen
class Prepared:
    """A probe that is ready to run, or already has its `observation`; `cached` means that it is from the store.

    `key` identifies the observation in the store, `drift` says where its lock differs from the requested
    holds, and `setup_s` is how many seconds the preparation took. `is_warm`: it will be forked. With `zygote` it is
    forked from that process.
    """

    probe: Probe
    key: str
    environment: Environment | None = None
    drift: tuple[str, ...] = ()
    observation: Observation | None = None
    cached: bool = False
    setup_s: float = 0.0
    is_warm: bool = False
    zygote: Zygote | None = None


# Their probes run on this machine or on others.
Probing: TypeAlias = "Prober | Around"


class Around:
    """A prober around another one, `prober`, which does all that a subclass does not do itself."""

    @property
    def prober(self) -> Probing:
        """The other one."""
        raise NotImplementedError

    def prober_of(self, probe: Probe) -> Probing:  # noqa: ARG002 - for several of them
        """The one that does what concerns a probe."""
        return self.prober

    @property
    def store(self) -> Store:
        """Where observations are kept."""
        return self.prober.store

    @property
    def builder(self) -> Builder:
        """Builds environments on this machine, to inspect them."""
        return self.prober.builder

    def resolve(self, probe: Probe) -> Resolution:
        """Return the lock of a probe."""
        return self.prober_of(probe).resolve(probe)

    def prepare(self, probe: Probe) -> Prepared:
        """Resolve a probe and build its environment, or return an observation without a run."""
        return self.prober_of(probe).prepare(probe)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a prepared probe."""
        return self.prober_of(prepared.probe).execute(prepared)

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe from the store, or None."""
        return self.prober_of(probe).known(probe)


@frozen
class Probers(Around):
    """Probers by the full version of their interpreter; a probe goes to the one of its `Combination.python`."""

    by_python: Mapping[str, Probing]

    @property
    def prober(self) -> Probing:
        """The first of them, whose store is that of all."""
        return next(iter(self.by_python.values()))

    def prober_of(self, probe: Probe) -> Probing:
        """The one of the probe's interpreter."""
        return self.by_python[probe.combination.python]


def environment_with(prober: Probing, lock: Lock) -> Environment | None:
    """Return the environment of a lock, to inspect its files; None if it can't be built.

    It is compared with its manifest, unless that was done a moment ago.
    """
    try:
        return prober.builder.build(lock, recent=True)
    except CannotBuild:
        return None


def run_ahead(prober: Probing, probe: Probe) -> str:
    """Run a probe that may be missing later, and return its key; "" if it was known, or could not be run."""
    with contextlib.suppress(Cancelled, HarnessError):  # a search that needs it runs it again
        prepared = prober.prepare(probe)
        if prepared.observation is None:
            return prober.execute(prepared).key
    return ""


def is_warm(observation: Observation) -> bool:
    """Whether a run was a fork, which may guide a search but can't be claimed."""
    return bool(observation.machine.get("forked"))


def seed_of(probe: Probe, lock: Lock) -> int:
    """The seed for Python's hashes in a run of a probe with this lock, an integer below 2**32; it names its path, too.

    It differs between the attempts at one lock and between locks, without a pattern: with small numbers in a row, a bug
    that depends on the order of hashes shows in the same attempts of every release, and one that depends on a checksum
    of its path (CRC-32 is linear) in none or in all of the first attempts of a release.
    """
    if probe.hash_seed is not None:
        return probe.hash_seed
    words = f"{lock.id} {probe.repro.digest} {probe.attempt}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big")


def path_of(probe: Probe, lock: Lock) -> int:
    """The number of the path to its environment that a run of a probe gets; 0 is the usual one, that of attempt 0."""
    seed = seed_of(probe, lock)
    return seed if seed != seed_of(evolve(probe, attempt=0, hash_seed=None), lock) else 0


def next_attempt(probe: Probe) -> Probe:
    """Return the next repetition of a probe."""
    return evolve(probe, attempt=probe.attempt + 1)


def prepared_since(prober: Probing, probe: Probe, moment: str, host: str = "") -> Prepared:
    """Prepare the first repetition of a probe, from its own attempt on, that was not run yet, or ran since a moment.

    `moment` is ISO 8601 in UTC. With `host`, only a run on the host with this name counts as known.
    """
    while True:
        prepared = prober.prepare(probe)
        run = prepared.observation
        if run is None or not prepared.cached:
            return prepared
        if run.started >= moment and (not host or run.machine.get("host") == host):
            return prepared
        probe = next_attempt(probe)


def known_attempts(probe: Probe, prober: Probing) -> list[Observation]:
    """Return the stored runs of a probe and its repetitions, in order, up to the first that is missing."""
    attempts: list[Observation] = []
    while (observation := prober.known(evolve(probe, attempt=len(attempts)))) is not None:
        attempts.append(observation)
    return attempts


def probe_key(probe: Probe, lock: Lock, gpus: tuple[Gpu, ...], terms: Terms) -> str:
    """The key of a probe's observation on these GPUs and terms. A run with more rights has another one."""
    device = probe.combination.device
    machine = gpus[0].name if device is Device.CUDA and gpus else ""
    if device is Device.EMULATED:
        machine = f"capability {terms.capability}"
    traced = ""
    if probe.trace is not None:
        traced = f"+trace{hashlib.sha256(json.dumps(sorted(probe.trace)).encode()).hexdigest()[:12]}"
    suffix = "".join(f"+{term}" for term in (terms.rights, terms.variables) if term)
    mixture = f"{probe.mixture.id if probe.mixture else ''}{traced}{suffix}"
    return observation_key(lock, probe.repro, device, machine=machine, attempt=probe.attempt, mixture=mixture)


def unresolvable_key(probe: Probe) -> str:
    """The key of an observation that no lock meets the requirements."""
    return f"{probe.combination.resolution_key}-{probe.repro.digest[:6]}"


def observation_of(prepared: Prepared, lock: Lock, ran: Ran, *, started: str, log: str) -> Observation:
    """The record of a run: `lock` is what was installed, `started` an ISO 8601 time, `log` relative to the results."""
    probe = prepared.probe
    ran = _on_shared_device(as_the_bug(ran, probe.repro.signature, probe.combination.device))
    ran = evolve(ran, machine={**ran.machine, "host": host_id()})
    return evolve(
        observation_without_run(probe, prepared.key, ran.outcome, "", lock, setup_s=prepared.setup_s),
        **{name: getattr(ran, name) for name in _RECORDED.split()},
        detail=ran.detail + _longer(ran, probe.repro),
        duration_s=round(ran.duration_s, 3),
        drift=prepared.drift,
        started=started,
        log=log,
    )


def _on_shared_device(ran: Ran) -> Ran:
    """Return a result whose lack of memory is the machine's if other processes had memory of its GPU before it ran."""
    used = ran.machine.get("device_memory_in_use")
    if ran.outcome is not Outcome.OUT_OF_MEMORY or not isinstance(used, int) or used < _OTHERS_NEED:
        return ran
    detail = f"{ran.detail}; other processes had {size_in_words(used)} of the GPU's memory before it ran"
    return evolve(ran, outcome=Outcome.MACHINE_FAILED, detail=detail)


@cache
def host_id() -> str:
    """A name of this machine that is the same for all its runs, and that nobody can turn into its host name."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        identity = ""
    words = f"regression-harness {identity or platform.node()}"
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def _longer(ran: Ran, repro: Repro) -> str:
    """How to give a run more time that was stopped by the limit that the user can change; "" if that is no help."""
    is_carried = not (repro.argv or repro.source)  # back from a bundle, without its signature
    may_be_bug = repro.signature.hang if repro.signature is not None else is_carried
    if ran.outcome is not Outcome.TIMED_OUT or may_be_bug or not repro.is_limit_own:
        return ""
    return f" (--timeout {2 * repro.timeout:g} gives it more)" if f"after {repro.timeout:g} s" in ran.detail else ""


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
        given={tree.variable: tree.record for tree in probe.repro.given if not tree.flaw},
    )
