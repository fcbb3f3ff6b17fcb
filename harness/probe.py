"""One probe: combination -> lock -> environment -> run -> observation. Everything that searches goes this way."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from harness.environment import (
    Environment,
    Mixer,
    Resolution,
    Uninstallable,
    Unresolvable,
    find_interpreter,
    foreign_lock,
)
from harness.environment.cleaning import discard
from harness.model import Combination, Device, Lock, Mixture, Observation, Outcome, Repro
from harness.run.devices import unavailable
from harness.run.process import Cancelled
from harness.run.runner import Job, run_repro
from harness.store import StoredResolution, observation_key

if TYPE_CHECKING:
    from harness.environment import Builder, Resolver, Workspace
    from harness.run.devices import Gpu
    from harness.run.result import Ran
    from harness.store import Store

__all__ = ["Cancelled", "Prepared", "Probe", "Prober"]


@frozen
class Probe:
    """One thing to try: a repro under a combination, near a lock; `attempt` counts repetitions from 0.

    `mixture` exchanges files of the environment; `trace` also records which installed functions were called; `lock`
    is given where it is known already, and nothing is resolved then.
    """

    repro: Repro
    combination: Combination
    near: Lock | None = None
    attempt: int = 0
    mixture: Mixture | None = None
    trace: bool = False
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


@frozen
class Prober:
    """Joins resolver, builder, runner and store. `invoked_from` is where relative paths of a command start."""

    store: Store
    resolver: Resolver
    builder: Builder
    workspace: Workspace
    gpus: tuple[Gpu, ...] = ()
    pass_env: tuple[str, ...] = ()
    capability: str = "8.6"
    invoked_from: Path = field(factory=Path.cwd)

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """The lock of a probe, from the store if this was asked before."""
        combination = probe.combination
        kept = self.store.get_resolution(combination.resolution_key)
        if kept is not None:
            return kept
        answer: Resolution | Unresolvable = self.resolver.resolve(combination, probe.near, cancel=cancel)
        if isinstance(answer, Resolution):
            resolution = StoredResolution(lock=answer.lock, drift=answer.drift)
        else:
            resolution = StoredResolution(lock=None, words=answer.words)
        self.store.put_resolution(combination.resolution_key, resolution, question_of(combination))
        return resolution

    def known(self, probe: Probe) -> Observation | None:
        """What was observed of a probe before, by the store alone; None where that is not there."""
        kept = self.store.get_resolution(probe.combination.resolution_key)
        if kept is None:
            return None
        return self.store.get(self.key(probe, kept.lock) if kept.lock else _unresolvable_key(probe))

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Lock and environment of a probe, or the observation that answers it without a run."""
        if probe.lock is not None:
            return self.prepare_lock(probe, probe.lock, cancel=cancel)
        begun = time.monotonic()
        resolution = self.resolve(probe, cancel=cancel)
        if resolution.lock is None:
            key = _unresolvable_key(probe)
            unresolvable = self._unrun(probe, key, Outcome.UNRESOLVABLE, resolution.words, None, begun)
            return Prepared(probe, key, observation=unresolvable)
        return self.prepare_lock(probe, resolution.lock, drift=resolution.drift, begun=begun, cancel=cancel)

    def prepare_lock(
        self,
        probe: Probe,
        lock: Lock,
        *,
        drift: tuple[str, ...] = (),
        begun: float | None = None,
        cancel: threading.Event | None = None,
    ) -> Prepared:
        """A probe whose lock is known already."""
        begun = time.monotonic() if begun is None else begun
        prepared = self.look_up(probe, lock, drift=drift, begun=begun)
        if prepared.observation is not None:
            return prepared
        key = prepared.key
        built = self.builder.build(lock, cancel=cancel)
        if isinstance(built, Environment) and probe.mixture is not None:
            built = Mixer(self.workspace).build(built, probe.mixture)
        if isinstance(built, Uninstallable):
            # What is said of a mixture is ours, not the installer's: it is cheap to say again.
            failed = self._unrun(
                probe, key, Outcome.UNINSTALLABLE, built.words, lock, begun, keep=probe.mixture is None
            )
            return Prepared(probe, key, observation=failed)
        return evolve(prepared, environment=built, setup_s=time.monotonic() - begun)

    def look_up(self, probe: Probe, lock: Lock, *, drift: tuple[str, ...] = (), begun: float) -> Prepared:
        """A probe whose lock is known, with its answer if that takes no environment; nothing is built."""
        key = self.key(probe, lock)
        if (kept := self.store.get(key)) is not None:
            return Prepared(probe, key, observation=kept, cached=True)
        if (why := unavailable(probe.combination.device, self.gpus)) is not None:
            missing = self._unrun(probe, key, Outcome.NO_DEVICE, why, lock, begun, keep=False)
            return Prepared(probe, key, observation=missing)
        return Prepared(probe, key, drift=drift)

    def prepare_in(self, python: str, probe: Probe) -> Prepared:
        """A probe in an environment that already exists, as it is."""
        interpreter = find_interpreter(python, self.builder.uv)
        lock = foreign_lock(interpreter)
        return Prepared(probe, self.key(probe, lock), environment=Environment(interpreter.path, lock))

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run a prepared probe and keep what was observed. Raises `Cancelled` when `cancel` is set."""
        if prepared.observation is not None:
            return prepared.observation
        if prepared.environment is None:
            raise ValueError("nothing to run")
        probe, environment = prepared.probe, prepared.environment
        log = self.store.log_path(prepared.key)
        started = datetime.now(UTC)
        ran = run_repro(
            Job(
                python=environment.python,
                repro=probe.repro,
                device=probe.combination.device,
                log_path=log,
                scratch_root=self.workspace.scratch,
                pycache_prefix=environment.pycache,
                pass_env=self.pass_env,
                capability=self.capability,
                invoked_from=self.invoked_from,
                trace=probe.trace,
            ),
            cancel=cancel,
        )
        self.builder.after_run(environment)
        if environment.is_mixture and environment.folder is not None:
            discard(environment.folder, self.workspace)
        observation = observation_of(
            probe,
            environment.lock,
            ran,
            key=prepared.key,
            drift=prepared.drift,
            setup_s=prepared.setup_s,
            started=started.isoformat(timespec="seconds"),
            log=log.relative_to(self.store.root).as_posix(),
        )
        self.store.put(observation)
        return observation

    def key(self, probe: Probe, lock: Lock) -> str:
        """The address in the store of what a probe with this lock comes to here."""
        return probe_key(probe, lock, gpus=self.gpus, capability=self.capability)

    def _unrun(
        self,
        probe: Probe,
        key: str,
        outcome: Outcome,
        words: str,
        lock: Lock | None,
        begun: float,
        *,
        keep: bool = True,
    ) -> Observation:
        observation = Observation(
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
            setup_s=round(time.monotonic() - begun, 3),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            attempt=probe.attempt,
            mixture=probe.mixture.label if probe.mixture else "",
        )
        if keep:
            self.store.put(observation)
        return observation


def probe_key(probe: Probe, lock: Lock, *, gpus: tuple[Gpu, ...], capability: str) -> str:
    """The address of what a probe shows where these GPUs are, or where the stand-in pretends this capability."""
    device = probe.combination.device
    machine = gpus[0].name if device is Device.CUDA and gpus else ""
    if device is Device.EMULATED:
        machine = f"capability {capability}"
    mixture = f"{probe.mixture.id if probe.mixture else ''}{'+trace' if probe.trace else ''}"
    return observation_key(lock, probe.repro, device, machine=machine, attempt=probe.attempt, mixture=mixture)


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
        called=dict(ran.called),
    )


def next_attempt(probe: Probe) -> Probe:
    """The same probe once more."""
    return evolve(probe, attempt=probe.attempt + 1)


def _unresolvable_key(probe: Probe) -> str:
    return f"{probe.combination.resolution_key}-{probe.repro.digest[:6]}"


def question_of(combination: Combination) -> dict[str, Any]:
    """A question to the resolver in words, for who reads the store."""
    return {
        "python": combination.python,
        "requirements": combination.requirements,
        "holds": combination.holds,
        "as_of": combination.as_of.isoformat() if combination.as_of else None,
        "near": combination.near,
        "asked": datetime.now(UTC).isoformat(timespec="seconds"),
    }
