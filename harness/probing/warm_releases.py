"""Processes to fork runs of whole environments from, each in the environment of a run that is known.

A process has imported only what is the same wheel there and in the environment of the run that is forked, so that the
fork finds the modules of its own environment. Which runs a process fits is told by the locks, and by the recorded
imports of its base, the fresh run. Between two releases of one package, one process fits all. Between two days dozens
of packages differ, but most environments of a search differ in few from one of the ends.
"""

from __future__ import annotations

import contextlib
import re
import threading
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from harness.environment import CannotBuild, watched_environment
from harness.environment.workspace import site_packages
from harness.probing.lanes import started
from harness.probing.preloading import names_of, preloadable
from harness.probing.warm_processes import CannotFork, limit_of, of_command, own_modules
from harness.run.forks import Zygote, started_zygote
from harness.run.process import ZygoteFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from harness.model import Lock, Observation
    from harness.probing.lanes import Task
    from harness.probing.probe import Probe
    from harness.probing.prober import Prober
    from harness.run.runner import Job


_GROUP = re.compile(r"^\[\s*([^\]]+?)\s*\]", re.MULTILINE)
_STARTS = 3  # of processes for the runs of one repro
_SHORT_S = 3.0  # a fresh process that takes less is no slower than another start
_WORTH = 0.5  # of the modules of a run: a process that has imported fewer saves too little
_WIDE = 0.8  # of the modules that fit one environment: so many that fit more environments are better


@define
class ForkBase:
    """The fresh run of a probe with a lock, in whose environment processes can be started to fork others from.

    `graph` are the modules that it imports with their files, and what each of them imported or looked up; those in
    `own` are imported by each run. `job` is the run of a process.
    """

    prober: Prober
    probe: Probe
    lock: Lock
    fresh: Observation
    job: Job
    graph: tuple[dict[str, str], dict[str, list[str]]]
    own: frozenset[str]
    _differing: dict[str, frozenset[str]] = field(factory=dict, init=False)  # by lock
    _modules: dict[frozenset[str], tuple[str, ...]] = field(factory=dict, init=False)  # by names

    @classmethod
    @contextlib.contextmanager
    def opened(cls, prober: Prober, probe: Probe, fresh: Observation) -> Iterator[ForkBase]:
        """Share the environment of a probe, with its lock, for as long as the context lasts. Raises `CannotFork`."""
        lock = probe.lock
        if lock is None:
            raise CannotFork("its packages are not known")
        graph = prober.recorded_imports(probe, lock)
        if graph is None:
            raise CannotFork("what the repro imports is not known")
        with contextlib.ExitStack() as stack:
            try:
                built = prober.builder.build(lock, recent=True)
                place = stack.enter_context(watched_environment(prober.builder, built, as_is=True))
            except CannotBuild as why:
                raise CannotFork(f"the environment can't be built: {why}") from why
            scratch, workspace = place.scratch / "forks", prober.workspace
            scratch.mkdir()
            job = prober.job(probe, lock, place)
            readable = (*job.place.readable, workspace.environments, workspace.pycache)
            job = evolve(job, place=evolve(job.place, scratch=scratch, readable=readable))
            packages = site_packages(place.environment.folder or built.folder or place.scratch)
            modules = {name: file.removeprefix(f"{packages}/") for name, file in graph[0].items()}
            own = own_modules(prober, modules) | of_command(probe.repro, modules, packages)
            yield cls(prober, probe, lock, fresh, job, (modules, graph[1]), own)

    def limit(self) -> float:
        """The seconds that a fork may take."""
        return limit_of(self.probe.repro, self.fresh.duration_s)

    def names_for(self, locks: Iterable[Lock]) -> frozenset[str] | None:
        """What a process for these environments, which are built, must not have imported; None if none can fit."""
        names = set(self.own)
        for lock in locks:
            differing = self._differing.get(lock.id)
            if differing is None and lock.python == self.lock.python:
                entries = self.prober.builder.differing_entries(self.lock, lock)
                # A new interpreter runs *.pth when it starts.
                if entries is not None and not any(entry.endswith(".pth") for entry in entries):
                    differing = self._differing[lock.id] = self._differing_in(lock, entries)
            if differing is None:
                return None
            names |= differing
        return frozenset(names)

    def modules_without(self, names: frozenset[str]) -> tuple[str, ...]:
        """The modules that a process can import if these names differ."""
        if names not in self._modules:
            self._modules[names] = preloadable(*self.graph, frozenset(), names)
        return self._modules[names]

    def _differing_in(self, other: Lock, entries: AbstractSet[str]) -> frozenset[str]:
        """What differs in another environment, as an import graph names it."""
        names = [change.name for change in self.lock.diff(other)]
        groups = (group for each in (self.lock, other) for group in self._groups_in(each, entries))
        return names_of(names, entries, groups)

    def _groups_in(self, lock: Lock, entries: Iterable[str]) -> Iterator[str]:
        """The groups of the entry points that these entries of an environment have."""
        packages = site_packages(self.prober.builder.location(lock).folder)
        for entry in entries:
            with contextlib.suppress(OSError):
                text = (packages / entry / "entry_points.txt").read_text(encoding="utf-8", errors="replace")
                yield from _GROUP.findall(text)


@define(eq=False)
class ForkProcess:
    """A process that has imported `modules` of a base, nothing that depends on `names`.

    `zygote` is its start, and `check` the comparison of a fork of the base with its fresh run, once it has begun.
    """

    base: ForkBase
    names: frozenset[str]
    modules: tuple[str, ...]
    zygote: Task[Zygote]
    check: Task[None] | None = field(default=None, init=False)

    def fits(self, lock: Lock) -> bool:
        """Whether runs with this lock, whose environment is built, can be forked from it."""
        names = self.base.names_for([lock])
        if names is None:
            return False
        return names <= self.names or set(self.modules).issubset(self.base.modules_without(names | self.names))

    def has_any(self, modules: AbstractSet[str]) -> bool:
        """Whether it has imported any of these modules."""
        return not modules.isdisjoint(self.modules)


@define
class ForkProcesses:
    """The processes from which runs of one repro are forked; they have to be closed.

    `check` compares a fork of a process with the run that the process is made for. `runs` are the fresh runs until now.
    """

    prober: Prober
    check: Callable[[ForkProcess, bool], None]
    runs: dict[str, tuple[Probe, Observation]] = field(factory=dict, init=False)  # by lock
    _bases: dict[str, ForkBase | None] = field(factory=dict, init=False)  # by lock
    _processes: list[ForkProcess] = field(factory=list, init=False)
    _opened: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _choosing: threading.RLock = field(factory=threading.RLock, init=False)
    _starting: threading.Lock = field(factory=threading.Lock, init=False)

    def close(self) -> None:
        """End the processes."""
        with self._choosing:
            tasks: list[Task[Any]] = [each.zygote for each in self._processes]
            tasks += [each.check for each in self._processes if each.check is not None]
        for task in tasks:
            task.stop()
        wait(tasks)
        self._opened.close()

    def begin(self) -> ForkProcess | None:
        """A process that fits the environments of all runs until now, started unless there is one already.

        None if it would not be worth a start.
        """
        with self._choosing:
            if self._processes:
                return self._processes[0]
            wide = [(base, names) for base in self._opened_bases() if (names := self._wide(base)) is not None]
            return self._started(max(wide, key=_gain, default=None))

    def for_lock(self, lock: Lock) -> ForkProcess | None:
        """The process that has imported the most for a run with this lock, whose environment is built.

        It is started if none has imported enough; None if no process fits and none is worth a start.
        """
        with self._choosing:
            fitting = self.running_for(lock)
            narrow = [(base, names) for base in self._opened_bases() if (names := base.names_for([lock])) is not None]
            best = max(narrow, key=_gain, default=None)
            if best is None or (fitting is not None and len(fitting.modules) >= _WORTH * _gain(best)):
                return fitting
            wide = [(base, names | more) for base, names in narrow if (more := self._wide(base)) is not None]
            widest = max(wide, key=_gain, default=best)
            return self._started(widest if _gain(widest) >= _WIDE * _gain(best) else best) or fitting

    def running_for(self, lock: Lock) -> ForkProcess | None:
        """The process that has imported the most and fits a run with this lock; None if there is none yet."""
        with self._choosing:
            fitting = [process for process in self._processes if process.fits(lock)]
            return max(fitting, key=lambda process: len(process.modules), default=None)

    def checked(self, process: ForkProcess) -> Task[None]:
        """The comparison of a fork of the process with its base, which begins now if it has not yet."""
        with self._choosing:
            if process.check is None:
                is_first = all(other.check is None or other.base is not process.base for other in self._processes)
                process.check = started(partial(self.check, process, is_first))
            return process.check

    def _opened_bases(self) -> list[ForkBase]:
        for lock, (probe, fresh) in list(self.runs.items()):
            if lock not in self._bases:
                self._bases[lock] = None
                with contextlib.suppress(CannotFork):
                    self._bases[lock] = self._opened.enter_context(ForkBase.opened(self.prober, probe, fresh))
        return [base for base in self._bases.values() if base is not None]

    def _wide(self, base: ForkBase) -> frozenset[str] | None:
        """What differs between a base and all runs until now."""
        return base.names_for([probe.lock for probe, _ in list(self.runs.values()) if probe.lock is not None])

    def _started(self, wanted: tuple[ForkBase, frozenset[str]] | None) -> ForkProcess | None:
        """Start a process, if that is worth it and if there are not too many."""
        if wanted is None:
            return None
        base, names = wanted
        most = _STARTS if base.fresh.duration_s >= _SHORT_S else 1
        modules = base.modules_without(names)
        if len(self._processes) >= most or len(modules) < _WORTH * len(base.graph[0]):
            return None
        process = ForkProcess(base, names, modules, started(partial(self._zygote, base, names, modules)))
        self._processes.append(process)
        return process

    def _zygote(self, base: ForkBase, names: frozenset[str], modules: tuple[str, ...]) -> Zygote:
        """Start a process. Raises `ZygoteFailed`."""
        with self._starting:
            zygote = self._opened.enter_context(started_zygote(base.job, modules))
        executed = (path.rpartition("-packages/")[2] for path in zygote.executed if path.endswith(".py"))
        if not {path.split("/")[0].removesuffix(".py") for path in executed}.isdisjoint(names):
            raise ZygoteFailed("an import always runs a file that changes")
        return zygote


def _gain(wanted: tuple[ForkBase, frozenset[str]]) -> int:
    """How many modules a process can import."""
    base, names = wanted
    return len(base.modules_without(names))
