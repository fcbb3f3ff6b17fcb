"""Forks probes of mixtures from a zygote: a process that has imported the modules which no candidate changes.

The zygote runs in a copy of the environment, in which folders with exchanged files are copied and all others are
linked. Before each fork, the candidate's files are put in place, so that the fork finds them where any process would.
The first zygote leaves out only the modules that depend on the likeliest files, so that its forks are quick. The first
probe with another file replaces it.

Forks are only used to search. The store keeps them apart from fresh processes, a proof is never a fork, and forking
stops if a fork and a fresh process disagree. A fork that dies or hangs, for example because a lock was held when it was
forked, is repeated in a fresh process. So is one that can't import something, until enough fresh ones have agreed.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.environment import Environment, watched_environment
from harness.environment.watched import exchange, flaw_of
from harness.environment.workspace import site_packages
from harness.model import Device, Lock, Mixture, Observation, Outcome, Repro
from harness.probing.probe import Around, Prepared, Probe, observation_of
from harness.run.forks import Zygote, started_zygote
from harness.run.process import ZygoteFailed
from harness.run.runner import Job, run_repro, with_own_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from harness.probing.prober import Prober


# Not conclusive in a fork: an import may fail because of the modules that were or were not imported before. Once so
# many fresh processes in a row, from the first on, have failed like their forks, the next ones are not asked.
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_ENOUGH = 8
_FORKED = "+fork"
_LIMIT, _LEAST_LIMIT_S = 5.0, 10.0  # a fork may take five times as long as a fresh process


class CannotFork(Exception):
    """Probes can't be forked; the message is a short reason."""


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
        own = with_own_folders(probe.repro, scratch / "built")
        job = evolve(prober.job(probe, lock, place), repro=own, scratch_root=scratch)

        def start(left_out: frozenset[str]) -> AbstractContextManager[Zygote]:
            return started_zygote(job, preloadable(*graph, {str(base / path) for path in left_out}))

        running = stack.enter_context(contextlib.ExitStack())
        compiled = place.pycache / packages.relative_to(packages.anchor) if place.pycache is not None else packages
        fresh = prober.store.get(prober.key(probe, lock))
        fresh_s = fresh.duration_s if fresh is not None else 0.0
        yield ForkingProber(prober, lock.id, job, packages, compiled, originals, start, first, running, fresh_s)


@define
class ForkingProber(Around):
    """A prober that forks the probes of mixtures of one environment, and passes all others to `prober`.

    `lock_id` is the lock of that environment. `originals` are the unchanged contents of all files that a candidate may
    exchange, by path relative to `packages`; None is a file that does not exist. `start` starts a zygote that has
    only imported modules that do not depend on some files, all of which must be unchanged then. `left_out` are those
    of the current `zygote`. `fresh_s` is how many seconds a fresh process of the repro takes (0: unknown). `forked`
    counts the forks. `stopped` is the reason why forking has stopped, "" if it has not.
    """

    prober: Prober
    lock_id: str
    job: Job
    packages: Path
    pycache: Path
    originals: Mapping[str, bytes | None]
    start: Callable[[frozenset[str]], AbstractContextManager[Zygote]]
    left_out: frozenset[str]
    _running: contextlib.ExitStack
    fresh_s: float = 0.0
    forked: int = 0
    stopped: str = ""
    _do_hang: bool = field(default=False, init=False)  # fresh processes hang where forks do
    _alike: float = field(default=0, init=False)  # fresh processes that failed to import like their forks; all did
    zygote: Zygote | None = field(default=None, init=False)
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)
    _turn: threading.Lock = field(factory=threading.Lock, init=False)

    def prepare(self, probe: Probe) -> Prepared:
        """Return a stored observation, or a probe to fork. A probe that can't be forked is prepared by `prober`."""
        lock = probe.lock
        if lock is None or probe.inside is not None or not self._can_fork(probe, lock):
            return self.prober.prepare(probe)
        if (kept := self.store.get(self.prober.key(probe, lock))) is not None:
            return Prepared(probe, kept.key, observation=kept, cached=True)
        key = self.prober.key(probe, lock) + _FORKED
        if (kept := self.store.get(key)) is not None and not _is_unsettled(kept):
            return Prepared(probe, key, observation=kept, cached=True)
        return Prepared(probe, key)

    def execute(self, prepared: Prepared) -> Observation:
        """Fork a probe. If the result of the fork is not conclusive, run the probe in a fresh process."""
        probe = prepared.probe
        if prepared.observation is not None or not prepared.key.endswith(_FORKED) or probe.lock is None:
            return self.prober.execute(prepared)
        forked = None
        if not self.stopped:
            with self._turn:
                forked = self._fork(probe, probe.lock, prepared.key)
            hung = forked is not None and forked.outcome is Outcome.TIMED_OUT
            if forked is not None and (not _is_unsettled(forked) or (hung and self._do_hang)):
                return forked
            if forked is not None and forked.outcome is Outcome.RAISED and self._alike >= _ENOUGH:
                return forked
        fresh = self.prober.execute(self.prober.prepare(probe))
        if forked is not None and forked.outcome is Outcome.RAISED:
            is_alike = (fresh.outcome, _name_in(fresh)) == (forked.outcome, _name_in(forked))
            self._alike = self._alike + 1 if is_alike else -math.inf
        if forked is not None and forked.outcome is Outcome.TIMED_OUT:
            self._do_hang = fresh.outcome is Outcome.TIMED_OUT
            if not self._do_hang:
                self.stop("a fork hung, a fresh process did not")
        elif forked is not None and forked.outcome is not Outcome.RAISED and forked.outcome is not fresh.outcome:
            self.stop(f"a fork ended otherwise ({forked.detail or forked.outcome}) than a fresh process")
        return fresh

    def begin(self) -> None:
        """Start the first zygote, so that the first fork does not wait for it."""
        with self._turn:
            try:
                self._zygote_for(frozenset())
            except ZygoteFailed as error:
                self.stop(str(error))

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
            and not flaw_of(probe.mixture, lock.python)
        )

    def _fork(self, probe: Probe, lock: Lock, key: str) -> Observation | None:
        begun = time.monotonic()
        log = self.store.log_path(key)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            zygote = self._zygote_for(_files_of(probe).keys())
            setup_s = time.monotonic() - begun
            self._place(_files_of(probe))
            own = self.job.repro.search_path
            repro = evolve(probe.repro, timeout=self.limit(probe.repro), search_path=own)
            ran = run_repro(evolve(self.job, repro=repro, log_path=log, zygote=zygote))
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

    def _zygote_for(self, files: AbstractSet[str]) -> Zygote:
        """Return a zygote that has imported nothing that depends on these files; any but the first fits all files.

        Raises `ZygoteFailed`.
        """
        if not self.left_out >= files:
            self.left_out, self.zygote = frozenset(self.originals), None
        if self.zygote is None:
            self._place({})
            self._running.close()
            self.zygote = self._running.enter_context(self.start(self.left_out))
        return self.zygote

    def limit(self, repro: Repro) -> float:
        """The seconds that a fork may take: a lock that was held when it was forked is never released."""
        return min(repro.timeout, max(_LEAST_LIMIT_S, _LIMIT * self.fresh_s)) if self.fresh_s else repro.timeout

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


def preloadable(
    modules: Mapping[str, str], imports: Mapping[str, Sequence[str]], candidates: AbstractSet[str]
) -> tuple[str, ...]:
    """The names of the modules that can be imported before the changed files are known, in the order of `modules`.

    A module is left out if a candidate may change its file, if it imports a module that is left out while it loads, or
    if its package is left out. All other modules are the same for every candidate.

    `modules` maps each module of a run to its file, in loading order. `imports` maps each module to those that it
    imported while it loaded. `candidates` are the files that may change.
    """
    importers: dict[str, set[str]] = {}
    for name, imported in imports.items():
        for other in imported:
            importers.setdefault(other, set()).add(name)
    inside: dict[str, set[str]] = {}
    for name in modules:
        package = name.rpartition(".")[0]
        if package:
            inside.setdefault(package, set()).add(name)
    reached = {name for name, file in modules.items() if file in candidates}
    border = list(reached)
    while border:
        name = border.pop()
        for other in (importers.get(name, set()) | inside.get(name, set())) - reached:
            reached.add(other)
            border.append(other)
    return tuple(name for name in modules if name not in reached)


def _files_of(probe: Probe) -> Mapping[str, bytes | None]:
    return probe.mixture.files if probe.mixture is not None else {}


def _name_in(observation: Observation) -> str:
    return observation.exception.name if observation.exception is not None else ""


def _is_unsettled(observation: Observation) -> bool:
    """Whether a fork may have failed because of the modules that were or were not imported before it."""
    raised = observation.exception
    return (raised is not None and raised.name in _IMPORT_ERRORS) or observation.outcome not in (
        Outcome.COMPLETED,
        Outcome.RAISED,
    )
