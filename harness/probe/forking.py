"""Forks probes of mixtures from a zygote: a process that has imported the modules which no candidate changes.

The zygote runs in a copy of the environment, in which folders with exchanged files are copied and all others are
linked. Before each fork, the candidate's files are put in place, so that the fork finds them where any process would.
The first zygote leaves out only the modules that depend on the likeliest files, so that its forks are quick. The first
probe with another file replaces it.

Forks are only used to search. The store keeps them apart from fresh processes, a proof is never a fork, and forking
stops if a fork and a fresh process disagree.
"""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.environment import Environment, watched_environment
from harness.environment.watched import exchange, flaw_of
from harness.environment.workspace import site_packages
from harness.model import Device, Mixture, Observation, Outcome
from harness.probe.asked import Prepared
from harness.probe.observing import observation_of
from harness.probe.preload import preloadable
from harness.probe.zygotes import CannotFork, Zygotes, zygote_of
from harness.run.forking import Zygote, ZygoteFailed
from harness.run.runner import Job, run_repro

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from harness.environment import Builder
    from harness.model import Lock
    from harness.probe.asked import Probe
    from harness.probe.prober import Prober
    from harness.run.result import Ran
    from harness.store import Store, StoredResolution

# Not conclusive in a fork: an import may fail because of the modules that were or were not imported before.
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_FORKED = "+fork"


@define
class ForkingProber:
    """A prober that forks the probes of mixtures of one environment, and passes all others to `inner`.

    `lock_id` is the lock of that environment. `originals` are the unchanged contents of all files that a candidate may
    exchange, by path relative to `packages`; None is a file that does not exist. `forked` counts the forks. `stopped`
    is the reason why forking has stopped, "" if it has not.
    """

    inner: Prober
    lock_id: str
    job: Job
    packages: Path
    pycache: Path
    originals: Mapping[str, bytes | None]
    zygotes: Zygotes
    forked: int = 0
    stopped: str = ""
    _first: tuple[Probe, Ran] | None = field(default=None, init=False)
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)
    _turn: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def store(self) -> Store:
        """The store of `inner`."""
        return self.inner.store

    @property
    def builder(self) -> Builder:
        """The builder of `inner`."""
        return self.inner.builder

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """Resolve a probe with `inner`."""
        return self.inner.resolve(probe, cancel=cancel)

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe from the store of `inner`, or None."""
        return self.inner.known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Return a stored observation, or a probe to fork. A probe that can't be forked is prepared by `inner`."""
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
        """Fork a probe. If the result of the fork is not conclusive, run the probe in a fresh process."""
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
        """Stop forking, for the reason `why`; only the first reason is kept."""
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
        log = self.store.log_path(key)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            setup_s, ran = self._run(probe, log, cancel)
        except (CannotFork, ZygoteFailed) as error:
            self.stop(str(error))
            return None
        self.forked += 1
        observation = observation_of(
            probe,
            lock,
            evolve(ran, machine={**ran.machine, "forked": True}),
            key=key,
            drift=(),
            setup_s=setup_s - begun,
            started=started,
            log=log.relative_to(self.store.root).as_posix(),
        )
        self.store.put(observation)
        return observation

    def _run(self, probe: Probe, log: Path, cancel: threading.Event | None) -> tuple[float, Ran]:
        """Run a probe in a fork; returns its start on the monotonic clock too. Raises `CannotFork`, `ZygoteFailed`."""
        files = probe.mixture.files if probe.mixture is not None else {}
        if not self.zygotes.fits(files):
            self._place({})
            zygote = self.zygotes.started_for(files)
            if self._first is not None:
                self._check(zygote, *self._first, cancel)
        self._place(files)
        begun = time.monotonic()
        job = evolve(self.job, repro=probe.repro, log_path=log, zygote=self.zygotes.started_for(files))
        ran = run_repro(job, cancel=cancel)
        self._first = self._first or (probe, ran)
        return begun, ran

    def _check(self, zygote: Zygote, probe: Probe, seen: Ran, cancel: threading.Event | None) -> None:
        """Repeat the first probe in another zygote. Raises `CannotFork` if the outcome or the exception differs."""
        self._place(probe.mixture.files if probe.mixture is not None else {})
        job = evolve(self.job, repro=probe.repro, log_path=self.job.scratch_root / "check.log", zygote=zygote)
        again = run_repro(job, cancel=cancel)
        names = [ran.exception.name if ran.exception is not None else "" for ran in (seen, again)]
        if again.outcome is not seen.outcome or names[0] != names[1]:
            raise CannotFork("forks of two processes disagree")

    def _place(self, files: Mapping[str, bytes | None]) -> None:
        """Put a candidate's files in place, restore those of the previous one, and delete stale bytecode."""
        wanted = {path: self.originals[path] for path in self._placed} | dict(files)
        for path, content in wanted.items():
            if path not in self._placed or self._placed[path] != content:
                exchange(self.packages, path, content)
                stem = Path(path).stem
                for stale in (self.pycache / path).parent.glob(f"{stem}.*.pyc"):
                    stale.unlink(missing_ok=True)
        self._placed = dict(files)


@contextlib.contextmanager
def forking(
    prober: Prober, probe: Probe, candidates: Iterable[str], likely: Iterable[str] = ()
) -> Iterator[ForkingProber]:
    """Open a prober that forks mixtures of an environment; it lasts as long as the context.

    `probe` is the probe of the unchanged environment, with its lock. `candidates` are the files that a mixture may
    exchange, by path relative to site-packages; the `likely` ones are exchanged first. Raises `CannotFork`.
    """
    lock = probe.lock
    if lock is None or probe.repro.argv or probe.combination.device is Device.CUDA:
        raise CannotFork("only scripts that run on the CPU are forked")
    graph = prober.imports(probe, lock)
    built = prober.builder.build(lock)  # compared, because its files are read below
    if graph is None or not isinstance(built, Environment) or built.folder is None:
        raise CannotFork("what the repro imports is not known")
    paths = sorted(set(candidates))
    base = site_packages(built.folder)
    originals = {path: (base / path).read_bytes() if (base / path).is_file() else None for path in paths}
    first = frozenset(likely).intersection(paths) or frozenset(paths)
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

        def start(left_out: frozenset[str]) -> AbstractContextManager[Zygote]:
            return zygote_of(job, preloadable(*graph, {str(base / path) for path in left_out}))

        zygotes = Zygotes(start, frozenset(paths), first, stack.enter_context(contextlib.ExitStack()))
        compiled = place.pycache / packages.relative_to(packages.anchor) if place.pycache is not None else packages
        yield ForkingProber(prober, lock.id, job, packages, compiled, originals, zygotes)


def _is_unsettled(observation: Observation) -> bool:
    """Whether a fork may have failed because of the modules that were or were not imported before it."""
    raised = observation.exception
    return (raised is not None and raised.name in _IMPORT_ERRORS) or observation.outcome not in (
        Outcome.COMPLETED,
        Outcome.RAISED,
    )
