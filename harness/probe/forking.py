"""Forks probes of mixtures from one process that imported the modules which no candidate changes.

The environment of the zygote is a copy in which packages with exchanged files have their own files. Before each fork,
the candidate's files are put in place, so that the fork finds them where any process would. Forks only search: the
store keeps them apart from fresh processes, a proof is never a fork, and if a fork and a fresh process disagree,
forking stops.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.environment import Environment, watched_environment
from harness.environment.build import site_packages
from harness.environment.mixing import exchange, flaw_of
from harness.model import Device, Mixture, Observation, Outcome
from harness.probe.asked import Prepared
from harness.probe.observing import observation_of
from harness.probe.preload import preloadable
from harness.run.devices.registry import hidden, passed_variables
from harness.run.forking import Zygote, ZygoteFailed
from harness.run.launch import repro_variables
from harness.run.runner import INSIDE, Job, run_repro, search_path
from harness.run.sandbox import FileAccess
from harness.run.scratch_folder import process_environment, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harness.environment import Builder
    from harness.model import Lock
    from harness.probe.asked import Probe
    from harness.probe.prober import Prober
    from harness.store import Store, StoredResolution

# A fork can't decide these: the import may fail because of what was or was not imported before.
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_FORKED = "+fork"


class CannotFork(Exception):
    """Why probes are not forked: a few words."""


@define
class ForkingProber:
    """A prober that forks the probes of mixtures in one environment, and passes all others to the prober below it.

    `originals` are the candidates' files as the environment has them; `forked` counts the forks.
    """

    inner: Prober
    lock_id: str
    job: Job
    packages: Path
    pycache: Path
    originals: Mapping[str, bytes | None]
    forked: int = 0
    stopped: str = ""
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)
    _turn: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def store(self) -> Store:
        """Where observations are kept."""
        return self.inner.store

    @property
    def builder(self) -> Builder:
        """Builds environments."""
        return self.inner.builder

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """As the prober below."""
        return self.inner.resolve(probe, cancel=cancel)

    def known(self, probe: Probe) -> Observation | None:
        """As the prober below."""
        return self.inner.known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """An answer, or a probe to fork. What can't be forked is prepared for a fresh process."""
        lock = probe.lock
        if lock is None or not self._can_fork(probe, lock):
            return self.inner.prepare(probe, cancel=cancel)
        if (kept := self.store.get(self.inner.key(probe, lock))) is not None:
            return Prepared(probe, kept.key, observation=kept, cached=True)
        key = self._key(probe, lock)
        if (kept := self.store.get(key)) is not None and not _is_unsettled(kept):
            return Prepared(probe, key, observation=kept, cached=True)
        if probe.mixture is not None and flaw_of(probe.mixture, lock.python):
            return self.inner.prepare(probe, cancel=cancel)
        return Prepared(probe, key)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Fork the probe. If the fork can't settle it, run it in a fresh process."""
        probe = prepared.probe
        if prepared.observation is not None or not prepared.key.endswith(_FORKED) or probe.lock is None:
            return self.inner.execute(prepared, cancel=cancel)
        if not self.stopped:
            with self._turn:
                observation = self._fork(probe, probe.lock, prepared.key, cancel)
            if observation is not None and not _is_unsettled(observation):
                return observation
        return self.inner.execute(self.inner.prepare(probe, cancel=cancel), cancel=cancel)

    def stop(self, why: str) -> None:
        """Stop forking; reports `why`."""
        self.stopped = self.stopped or why

    def _can_fork(self, probe: Probe, lock: Lock) -> bool:
        return (
            not self.stopped
            and probe.mixture is not None
            and not probe.attempt
            and probe.trace is None
            and lock.id == self.lock_id
            and probe.mixture.files.keys() <= self.originals.keys()
        )

    def _key(self, probe: Probe, lock: Lock) -> str:
        return self.inner.key(probe, lock) + _FORKED

    def _fork(self, probe: Probe, lock: Lock, key: str, cancel: threading.Event | None) -> Observation | None:
        begun = time.monotonic()
        self._place(probe.mixture.files if probe.mixture is not None else {})
        setup_s = time.monotonic() - begun
        started = datetime.now(UTC).isoformat(timespec="seconds")
        log = self.store.log_path(key)
        try:
            ran = run_repro(evolve(self.job, repro=probe.repro, log_path=log), cancel=cancel)
        except ZygoteFailed as error:
            self.stop(str(error))
            return None
        self.forked += 1
        observation = observation_of(
            probe,
            lock,
            evolve(ran, machine={**ran.machine, "forked": True}),
            key=key,
            drift=(),
            setup_s=setup_s,
            started=started,
            log=log.relative_to(self.store.root).as_posix(),
        )
        self.store.put(observation)
        return observation

    def _place(self, files: Mapping[str, bytes | None]) -> None:
        """Put a candidate's files in place, and restore those of the previous one."""
        wanted = {path: self.originals[path] for path in self._placed} | dict(files)
        for path, content in wanted.items():
            if path not in self._placed or self._placed[path] != content:
                exchange(self.packages, path, content)
                stem = Path(path).stem
                for stale in (self.pycache / path).parent.glob(f"{stem}.*.pyc"):
                    stale.unlink(missing_ok=True)
        self._placed = dict(files)


@contextlib.contextmanager
def forking(prober: Prober, probe: Probe, candidates: Iterable[str]) -> Iterator[ForkingProber]:
    """Fork the mixtures of an environment whose exchanged files are among `candidates`, while the context lasts.

    `probe` is the probe of the environment itself, with its lock; `candidates` are paths below its site-packages.
    Raises `CannotFork`.
    """
    lock = probe.lock
    if lock is None or probe.repro.argv or probe.combination.device is Device.CUDA:
        raise CannotFork("only scripts that run on the CPU are forked")
    graph = prober.imports(probe, lock)
    built = prober.builder.build(lock)
    if graph is None or not isinstance(built, Environment) or built.folder is None:
        raise CannotFork("what the repro imports is not known")
    paths = sorted(set(candidates))
    base = site_packages(built.folder)
    originals = {path: (base / path).read_bytes() if (base / path).is_file() else None for path in paths}
    modules = preloadable(*graph, {str(base / path) for path in paths})
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(
            watched_environment(prober.builder, built, mixture=Mixture(files=originals, label="to fork from"))
        )
        packages = site_packages(place.environment.folder or built.folder)
        scratch = place.scratch / "forks"
        scratch.mkdir()
        job = Job(
            python=place.environment.python,
            repro=probe.repro,
            device=probe.combination.device,
            log_path=Path(),
            scratch_root=scratch,
            pycache_prefix=place.pycache,
            pass_env=prober.pass_env,
            capability=prober.capability,
            invoked_from=prober.invoked_from,
            sandbox=prober.sandbox,
            readable=(prober.workspace.root,),
        )
        zygote = stack.enter_context(_zygote(job, modules))
        compiled = place.pycache / packages.relative_to(packages.anchor) if place.pycache is not None else packages
        yield ForkingProber(prober, lock.id, evolve(job, zygote=zygote), packages, compiled, originals)


@contextlib.contextmanager
def _zygote(job: Job, modules: tuple[str, ...]) -> Iterator[Zygote]:
    """Start the process to fork from, in the same sandbox as a run. Raises `CannotFork`."""
    with scratch_folder(job.scratch_root) as folder:
        env = process_environment(
            folder,
            ours=os.environ,
            python=job.python,
            pass_env=(*job.pass_env, *passed_variables()),
            pycache_prefix=job.pycache_prefix,
            extra={
                **repro_variables(job.repro.params, job.device.value),
                **search_path(folder, job.repro),
                **(hidden() if job.device is Device.CPU else {}),
            },
        )
        access = FileAccess(
            scratch=job.scratch_root,
            work=folder.work,
            python=job.python,
            readable=(*job.readable, job.invoked_from.absolute(), INSIDE.parent),
            writable=(job.pycache_prefix,) if job.pycache_prefix is not None else (),
        )
        emulation = {"package": str(INSIDE / "emulation"), "capability": job.capability}
        try:
            zygote = Zygote.start(
                job.python,
                modules,
                env=env,
                scratch_root=job.scratch_root,
                emulation=emulation if job.device is Device.EMULATED else None,
                sandbox=job.sandbox.around(access) if job.sandbox is not None else (),
                timeout=job.repro.timeout,
            )
        except ZygoteFailed as error:
            raise CannotFork(str(error)) from error
        try:
            yield zygote
        finally:
            zygote.close()


def _is_unsettled(observation: Observation) -> bool:
    """Whether a fork may have failed because of what was or was not imported before it."""
    raised = observation.exception
    return (raised is not None and raised.name in _IMPORT_ERRORS) or observation.outcome not in (
        Outcome.COMPLETED,
        Outcome.RAISED,
    )
