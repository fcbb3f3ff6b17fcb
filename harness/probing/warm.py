"""Warm runs: probes are forked from a process that has imported the modules which no candidate changes.

`WarmProber` answers a probe from the store, by a fork or by a fresh process; who asks need not know which. Only what
will be claimed is asked for as `fresh`. Each environment to fork in is a copy, in which folders with exchanged files
are copied and all others are linked. Before each fork, the candidate's files are put in place, so that the fork finds
them where any process would. The first process to fork from leaves out only the modules that depend on the likeliest
files, so that its forks are quick. The first probe with another file replaces it.

Forks are believed as long as they agree with fresh processes. The unchanged environment is forked once and must have
the verdict of its fresh run, and each fresh run is compared with the fork of the same probe. After the first
disagreement every run is fresh. A fork that dies or hangs, for example because a lock was held when it was forked, is
repeated in a fresh process. So is one that can't import something, until enough fresh ones have agreed.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from concurrent.futures import wait
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.environment import CannotBuild, watched_environment
from harness.environment.watched import exchange, flaw_of
from harness.environment.workspace import module_of, site_packages
from harness.events import Judged, Note, Reporter, Started
from harness.model import Device, Mixture, Observation, Outcome, Verdict
from harness.probing.probe import Around, Prepared, Probe
from harness.run.forks import Zygote, started_zygote
from harness.run.process import ZygoteFailed
from harness.run.runner import Job, run_repro, with_own_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from harness.model import Judgement, Lock, Repro
    from harness.probing.lanes import Lanes, Task
    from harness.probing.prober import Prober


# Not conclusive in a fork: an import may fail because of the modules that were or were not imported before. Once so
# many fresh processes in a row, from the first on, have failed like their forks, the next ones are not asked.
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_ENOUGH = 8
_FORKED = "+fork"
_LIMIT, _LEAST_LIMIT_S = 5.0, 10.0  # a fork may take five times as long as a fresh process


class CannotFork(Exception):
    """Probes can't be forked; the message is a short reason."""


def is_warm(observation: Observation) -> bool:
    """Whether a run was a fork, which may guide a search but can't be claimed."""
    return bool(observation.machine.get("forked"))


@define
class WarmEnvironment:
    """A copy of an environment, and the process to fork from in it, which is started for the first fork.

    `packages` is its site-packages and `pycache` the folder of its bytecode. `graph` are the modules that the repro
    imports with their files, and the imports of each. `originals` are the unchanged contents of all files that a probe
    may exchange, by path relative to `packages`; None is a file that does not exist. The process has imported only
    modules that do not depend on the files in `left_out`.
    """

    prober: Prober
    job: Job
    packages: Path
    pycache: Path
    graph: tuple[dict[str, str], dict[str, list[str]]]
    originals: Mapping[str, bytes | None]
    left_out: frozenset[str]
    fresh_s: float  # how long a fresh process of the repro takes, 0 if unknown
    zygote: Zygote | None = field(default=None, init=False)
    _running: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, prober: Prober, base: Probe, files: Iterable[str], first: AbstractSet[str]
    ) -> Iterator[WarmEnvironment]:
        """Copy the environment of an unchanged probe, with its lock, for as long as the context lasts.

        `files` may be exchanged, and those in `first` are exchanged first. Raises `CannotFork`.
        """
        lock = base.lock
        if lock is None or base.repro.argv or base.combination.device is Device.CUDA:
            raise CannotFork("only scripts that run on the CPU are forked")
        graph = prober.imports(base, lock)
        try:
            built = prober.builder.build(lock)  # compared, because its files are read below
        except CannotBuild as why:
            raise CannotFork(f"the environment can't be built: {why}") from why
        if graph is None or built.folder is None:
            raise CannotFork("what the repro imports is not known")
        paths = sorted(set(files))
        original = site_packages(built.folder)
        modules = {name: file.removeprefix(f"{original}/") for name, file in graph[0].items()}
        originals = {path: (original / path).read_bytes() if (original / path).is_file() else None for path in paths}
        with contextlib.ExitStack() as stack:
            mixture = Mixture(files=originals, label="to fork from")
            place = stack.enter_context(watched_environment(prober.builder, built, mixture=mixture))
            packages = site_packages(place.environment.folder or built.folder)
            scratch = place.scratch / "forks"
            scratch.mkdir()
            repro = with_own_folders(base.repro, scratch / "built")
            job = prober.job(base, lock, place)
            fresh = prober.store.get(prober.key(base, lock))
            warm = cls(
                prober,
                evolve(job, repro=repro, place=evolve(job.place, scratch=scratch)),
                packages,
                place.pycache / packages.relative_to(packages.anchor) if place.pycache is not None else packages,
                (modules, graph[1]),
                originals,
                frozenset(first).intersection(paths) or frozenset(paths),
                fresh.duration_s if fresh is not None else 0.0,
            )
            stack.enter_context(warm._running)
            yield warm

    def _start(self, files: AbstractSet[str]) -> Zygote:
        """The process that has imported nothing that depends on these files; any but the first fits all files.

        Raises `ZygoteFailed`.
        """
        if not self.left_out >= files:
            self.left_out, self.zygote = frozenset(self.originals), None
        if self.zygote is None:
            self._place({})
            self.zygote = self._started()
        return self.zygote

    def _started(self) -> Zygote:
        """Start the process, again with fewer modules if one of them has imported a file in a way that nobody saw."""
        modules = preloadable(*self.graph, self.left_out)
        for names in (modules, _before_any(self.left_out, modules, self.graph[0])):
            self._running.close()
            zygote = self._running.enter_context(started_zygote(self.job, names))
            executed = {path.rpartition("-packages/")[2] for path in zygote.executed}
            if executed.isdisjoint(self.left_out):
                return zygote
        raise ZygoteFailed("an import always runs a file that changes")

    def run(self, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe and store the observation. Raises `ZygoteFailed`."""
        begun, started = time.monotonic(), datetime.now(UTC)
        files = probe.mixture.files if probe.mixture is not None else {}
        zygote = self._start(files.keys())
        prepared = Prepared(probe, key, setup_s=time.monotonic() - begun)
        self._place(files)
        repro = evolve(probe.repro, timeout=self.limit(probe.repro), search_path=self.job.repro.search_path)
        ran = run_repro(evolve(self.job, repro=repro, log_path=self.prober.store.log_path(key), zygote=zygote))
        return self.prober.record(prepared, lock, evolve(ran, machine={**ran.machine, "forked": True}), started)

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


@define
class Trust:
    """Whether forks are believed: as long as they agree with fresh processes, by what `judge` says of both.

    `stopped` is the reason why runs are not forked any more, "" if they are; `was_wrong`: a fork and a fresh process
    disagreed, so that what forks have shown has to be judged again. `reporter` is told once.
    """

    judge: Callable[[Observation], Judgement]
    reporter: Reporter
    stopped: str = field(default="", init=False)
    was_wrong: bool = field(default=False, init=False)
    _verdicts: dict[str, Verdict] = field(factory=dict, init=False)  # of forks, by the key of a fresh run
    _do_hang: bool = field(default=False, init=False)  # fresh processes hang where forks do
    _alike: float = field(default=0, init=False)  # fresh processes that failed to import like their forks; all did

    def stop(self, why: str) -> None:
        """Run everything in fresh processes from now on, for the reason `why`."""
        if not self.stopped:
            self.stopped = why
            self.reporter.report(Note(f"forks don't work here: {why}; each run is a fresh process"))

    def note(self, forked: Observation) -> None:
        """Note the verdict of a fork, with which a fresh run has to agree."""
        self._verdicts[forked.key.removesuffix(_FORKED)] = self.judge(forked).verdict

    def compare(self, fresh: Observation) -> None:
        """Compare a fresh run with the fork of the same probe, if there was one."""
        forked = self._verdicts.pop(fresh.key, None)
        if forked is not None:
            self.check(self.judge(fresh), forked)

    def check(self, judgement: Judgement, verdict: Verdict) -> None:
        """Check the judgement of a run that must have this verdict."""
        if judgement.verdict is not verdict:
            self.was_wrong = True
            self.stop("a fork and a fresh process disagree")

    def is_conclusive(self, forked: Observation) -> bool:
        """Whether the result of a fork is that of a fresh process, as far as the runs until now can say."""
        if not _is_unsettled(forked):
            return True
        if forked.outcome is Outcome.RAISED:
            return self._alike >= _ENOUGH
        return forked.outcome is Outcome.TIMED_OUT and self._do_hang

    def learn(self, forked: Observation, fresh: Observation) -> None:
        """Compare a fork that was not conclusive with the fresh run."""
        if forked.outcome is Outcome.RAISED:
            is_alike = (fresh.outcome, _name_in(fresh)) == (forked.outcome, _name_in(forked))
            self._alike = self._alike + 1 if is_alike else -math.inf
        elif forked.outcome is Outcome.TIMED_OUT:
            self._do_hang = fresh.outcome is Outcome.TIMED_OUT
            if not self._do_hang:
                self.stop("a fork hung, a fresh process did not")
        elif forked.outcome is not fresh.outcome:
            self.stop(f"a fork ended otherwise ({forked.detail or forked.outcome}) than a fresh process")


@define
class WarmProber(Around):
    """Forks the probes that it was told to `expect`, and passes all others to `prober`; it has to be closed.

    `trust` says whether it may. `forked` counts the forks, `checks` those of unchanged environments.
    """

    prober: Prober
    lanes: Lanes
    trust: Trust
    forked: int = field(default=0, init=False)
    checks: int = field(default=0, init=False)
    _files: dict[str, frozenset[str]] = field(factory=dict, init=False)  # that may be exchanged, by lock
    _opening: dict[str, Task[WarmEnvironment | None]] = field(factory=dict, init=False)
    _opened: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _turn: threading.Lock = field(factory=threading.Lock, init=False)

    def expect(self, base: Probe, verdict: Verdict, files: Iterable[str], first: Iterable[Probe] = ()) -> None:
        """Prepare to fork many probes with some `files` of one environment exchanged, those in `first` before others.

        `base` is the probe of the unchanged environment, with its lock; its fork must have this verdict.
        """
        if self.trust.stopped or base.lock is None or base.lock.id in self._files:
            return
        self.trust.reporter.report(Started("preparing a process from which the next runs are forked"))
        self._files[base.lock.id] = frozenset(files)
        changed = frozenset[str]().union(*(probe.mixture.files for probe in first if probe.mixture is not None))
        self._opening[base.lock.id] = self.lanes.submit(partial(self._open, base, base.lock, verdict, changed))

    def close(self) -> None:
        """End the processes to fork from."""
        for opening in self._opening.values():
            opening.stop()
        wait(self._opening.values())
        self._opened.close()

    def prepare(self, probe: Probe) -> Prepared:
        """Return a stored observation, a probe to fork, or what `prober` has prepared."""
        lock = probe.lock
        if lock is None or not self._can_fork(probe, lock):
            prepared = self.prober.prepare(probe)
            if prepared.observation is not None:
                self.trust.compare(prepared.observation)
            return prepared
        fresh = self.prober.key(probe, lock)
        if (known := self.prober.current(fresh)) is not None:
            return Prepared(probe, known.key, observation=known, cached=True)
        if (known := self.prober.current(fresh + _FORKED)) is not None and not _is_unsettled(known):
            self.trust.note(known)
            return Prepared(probe, known.key, observation=known, cached=True, is_warm=True)
        return Prepared(probe, fresh + _FORKED, is_warm=True)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a prepared probe. If the result of a fork is not conclusive, it is repeated in a fresh process."""
        probe, lock = prepared.probe, prepared.probe.lock
        if prepared.observation is not None or not prepared.is_warm or lock is None:
            observation = self.prober.execute(prepared)
            self.trust.compare(observation)
            return observation
        return self._run(self._opening[lock.id].result(), probe, lock, prepared.key)

    def _can_fork(self, probe: Probe, lock: Lock) -> bool:
        return (
            not self.trust.stopped
            and not probe.fresh
            and not probe.attempt
            and probe.mixture is not None
            and probe.inside is None
            and probe.trace is None
            and lock.id in self._files
            and probe.mixture.files.keys() <= self._files[lock.id]
            and not flaw_of(probe.mixture, lock.python)
        )

    def _open(self, base: Probe, lock: Lock, verdict: Verdict, first: AbstractSet[str]) -> WarmEnvironment | None:
        """Open the environment of a probe; None if it can't be forked, or if its fork has another verdict."""
        try:
            context = WarmEnvironment.opened(self.prober, base, self._files[lock.id], first)
            warm = self._opened.enter_context(context)
        except CannotFork as why:
            self.trust.stop(str(why))
            return None
        unchanged = evolve(base, mixture=Mixture(files={}, label="nothing exchanged"))
        prepared = self.prepare(unchanged)
        if not prepared.is_warm:
            return None
        observation = prepared.observation or self._run(warm, unchanged, lock, prepared.key)
        self.checks += not prepared.cached
        judgement = self.trust.judge(observation)
        label = f"forked: the {verdict.value} environment"
        self.trust.reporter.report(Judged(label, judgement, observation, cached=prepared.cached))
        self.trust.check(judgement, verdict)
        return None if self.trust.stopped else warm

    def _run(self, warm: WarmEnvironment | None, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe; run it in a fresh process if it can't be forked or if the result is not conclusive."""
        forked = self._fork(warm, probe, lock, key) if warm is not None and not self.trust.stopped else None
        if forked is not None and self.trust.is_conclusive(forked):
            self.trust.note(forked)
            return forked
        fresh = self.prober.execute(self.prober.prepare(probe))
        if forked is not None:
            self.trust.learn(forked, fresh)
        return fresh

    def _fork(self, warm: WarmEnvironment, probe: Probe, lock: Lock, key: str) -> Observation | None:
        try:
            with self._turn:
                forked = warm.run(probe, lock, key)
        except ZygoteFailed as error:
            self.trust.stop(str(error))
            return None
        self.forked += 1
        return forked


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
    # A file that is missing may appear, and then what has looked for it in vain runs otherwise.
    reached |= {name for name in map(module_of, candidates) if name not in modules}
    border = list(reached)
    while border:
        name = border.pop()
        for other in (importers.get(name, set()) | inside.get(name, set())) - reached:
            reached.add(other)
            border.append(other)
    return tuple(name for name in modules if name not in reached)


def _before_any(candidates: AbstractSet[str], names: Sequence[str], modules: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the modules that were loaded before any file in `candidates` was: they can't need it to load."""
    before = set(itertools.takewhile(lambda name: modules[name] not in candidates, modules))
    return tuple(name for name in names if name in before)


def _name_in(observation: Observation) -> str:
    return observation.exception.name if observation.exception is not None else ""


def _is_unsettled(observation: Observation) -> bool:
    """Whether a fork may have failed because of the modules that were or were not imported before it."""
    raised = observation.exception
    return (raised is not None and raised.name in _IMPORT_ERRORS) or observation.outcome not in (
        Outcome.COMPLETED,
        Outcome.RAISED,
    )
