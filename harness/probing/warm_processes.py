"""Processes to fork runs of one environment with some files exchanged from.

`WarmEnvironment` forks runs in a copy of one environment, in which folders with exchanged files are copied and all
others are linked. Before each fork, the candidate's files are put in place, so that the fork finds them where any
process would. The first process to fork from leaves out only the modules that depend on the likeliest files, so that
its forks are quick. The first probe with another file replaces it. Lanes that fork at the same time have a copy each.
"""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.environment import CannotBuild, WatchedEnvironment, watched_environment
from harness.environment.watched import copied_environment, exchange
from harness.environment.workspace import site_packages
from harness.model import Device, Mixture
from harness.probing.preloading import before_any, preloadable
from harness.probing.probe import Prepared, Probe
from harness.run.commands import is_forkable
from harness.run.forks import Zygote, started_zygote
from harness.run.process import ZygoteFailed
from harness.run.runner import Job, run_repro, with_own_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from harness.model import Lock, Observation, Repro
    from harness.probing.prober import Prober
    from harness.probing.warm_releases import ForkProcess


_AT_START = frozenset({"sitecustomize", "usercustomize"})
_LIMIT, _LEAST_LIMIT_S = 3.0, 10.0  # a fork may take three times as long as a fresh process


class CannotFork(Exception):
    """Probes can't be forked; the message is a short reason."""


def own_modules(prober: Prober, modules: Mapping[str, str]) -> frozenset[str]:
    """The modules that are neither installed nor of the standard library: those of the user's project.

    Not those that an interpreter imports when it starts, as the process to fork from does.
    """
    stdlib = f"{prober.builder.interpreter.stdlib}/"
    own = {name for name, file in modules.items() if file.startswith("/") and not file.startswith(stdlib)}
    return frozenset(own - _AT_START)


def of_command(repro: Repro, modules: Mapping[str, str], packages: Path) -> frozenset[str]:
    """The modules that a command imports itself: of pytest, which rewrites their assertions, its own and its plugins'.

    Raises `CannotFork` if it measures what is imported.
    """
    if not repro.argv:
        return frozenset()
    if not is_forkable(repro.argv) or "coverage" in modules:
        raise CannotFork("of commands, only pytest and modules (python -m NAME) are forked, without coverage")
    names = {"pytest", "_pytest"}
    for info in packages.glob("*.dist-info"):
        with contextlib.suppress(OSError):
            if "[pytest11]" in (info / "entry_points.txt").read_text(encoding="utf-8", errors="replace"):
                rows = (info / "RECORD").read_text(encoding="utf-8", errors="replace").splitlines()
                entries = {row.split(",")[0].split("/")[0] for row in rows}
                names |= {entry.removesuffix(".py") for entry in entries if not entry.endswith(".dist-info")}
    return frozenset(names)


def limit_of(repro: Repro, fresh_s: float) -> float:
    """The seconds that a fork may take, if a fresh process takes `fresh_s` (0: unknown).

    A lock that was held when it was forked is never released.
    """
    return min(repro.timeout, max(_LEAST_LIMIT_S, _LIMIT * fresh_s)) if fresh_s else repro.timeout


@frozen
class Unchanged:
    """A copy of an environment in which nothing runs, and what further copies need whose files are exchanged.

    `graph` are the modules that the repro imports with their files, and the imports of each; those in `own` are
    imported by each run. `originals` are the contents of all files that a probe may exchange, by path relative to
    site-packages; None is a file that does not exist. Those in `first` are exchanged before others. A fresh process
    takes `fresh_s`, 0 if unknown. Processes are forked from `parent` if that has imported nothing that depends on the
    files.
    """

    prober: Prober
    base: Probe
    place: WatchedEnvironment
    graph: tuple[dict[str, str], dict[str, list[str]]]
    own: frozenset[str]
    originals: Mapping[str, bytes | None]
    first: frozenset[str]
    fresh_s: float
    parent: ForkProcess | None = None

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        prober: Prober,
        base: Probe,
        files: Iterable[str],
        first: AbstractSet[str],
        parent: ForkProcess | None = None,
    ) -> Iterator[Unchanged]:
        """Copy the environment of a probe, with its lock, in which `files` may be exchanged. Raises `CannotFork`."""
        lock = base.lock
        if lock is None or base.combination.device is Device.CUDA:
            raise CannotFork("only runs on the CPU are forked")
        graph = prober.imports(base, lock)
        try:
            built = prober.builder.build(lock)  # compared, because its files are read below
        except CannotBuild as why:
            raise CannotFork(f"the environment can't be built: {why}") from why
        if graph is None or built.folder is None:
            raise CannotFork("what the repro imports is not known")
        paths = sorted(set(files))
        packages = site_packages(built.folder)
        originals = {path: (packages / path).read_bytes() if (packages / path).is_file() else None for path in paths}
        modules = {name: file.removeprefix(f"{packages}/") for name, file in graph[0].items()}
        own = of_command(base.repro, modules, packages)
        own |= own_modules(prober, modules) if base.repro.argv else frozenset()
        fresh = prober.store.get(prober.key(base, lock))
        fresh_s = fresh.duration_s if fresh is not None else 0.0
        likely = frozenset(first).intersection(paths) or frozenset(paths)
        mixture = Mixture(files=originals, label="to fork from")
        with watched_environment(prober.builder, built, mixture=mixture) as place:
            yield cls(prober, base, place, (modules, graph[1]), own, originals, likely, fresh_s, parent)

    @contextlib.contextmanager
    def copy(self) -> Iterator[WarmEnvironment]:
        """A copy in which probes are forked, for as long as the context lasts. Raises `ZygoteFailed`."""
        prober, lock = self.prober, self.place.environment.lock
        within = self.parent.zygote.result().scratch if self.parent is not None else prober.workspace.scratch
        stdlib = prober.builder.interpreter.stdlib
        with copied_environment(self.place, stdlib, within) as place, contextlib.ExitStack() as running:
            scratch = place.scratch / "forks"
            scratch.mkdir()
            job = prober.job(self.base, lock, place)
            repro = with_own_folders(self.base.repro, scratch / "built")
            packages, pycache = site_packages(place.environment.folder or scratch), place.pycache or scratch
            yield WarmEnvironment(
                self,
                evolve(job, repro=repro, place=evolve(job.place, scratch=scratch)),
                packages,
                pycache / packages.relative_to(packages.anchor),
                self.first,
                running,
            )

    def limit(self, repro: Repro) -> float:
        """The seconds that a fork may take."""
        return limit_of(repro, self.fresh_s)


@define
class WarmEnvironment:
    """A copy of an environment, and the process to fork from in it, which is started for the first fork.

    `packages` is its site-packages and `pycache` the folder of its bytecode. The process has imported only modules that
    do not depend on the files in `left_out`. It runs one probe at a time.
    """

    unchanged: Unchanged
    job: Job
    packages: Path
    pycache: Path
    left_out: frozenset[str]
    _running: contextlib.ExitStack
    zygote: Zygote | None = field(default=None, init=False)
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)

    def start(self, files: AbstractSet[str]) -> Zygote:
        """The process that has imported nothing that depends on these files; any but the first fits all files.

        Raises `ZygoteFailed`.
        """
        if not self.left_out >= files:
            self.left_out, self.zygote = frozenset(self.unchanged.originals), None
        if self.zygote is None:
            self._place({})
            self.zygote = self._started()
        return self.zygote

    def _started(self) -> Zygote:
        """Start the process, again with fewer modules if one of them has imported a file in a way that nobody saw."""
        (files, imports), process = self.unchanged.graph, self.unchanged.parent
        modules, parent = preloadable(files, imports, self.left_out, self.unchanged.own), None
        if process is not None and not process.has_any(files.keys() - set(modules)):
            parent = process.zygote.result()
        for names in (modules, before_any(self.left_out, modules, files)):
            self._running.close()
            zygote = self._running.enter_context(started_zygote(self.job, names, parent))
            executed = {path.rpartition("-packages/")[2] for path in zygote.executed}
            if executed.isdisjoint(self.left_out):
                return zygote
        raise ZygoteFailed("an import always runs a file that changes")

    def run(self, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe and store the observation. Raises `ZygoteFailed`."""
        begun, started = time.monotonic(), datetime.now(UTC)
        files = probe.mixture.files if probe.mixture is not None else {}
        zygote, prober = self.start(files.keys()), self.unchanged.prober
        prepared = Prepared(probe, key, setup_s=time.monotonic() - begun)
        self._place(files)
        repro = evolve(probe.repro, timeout=self.unchanged.limit(probe.repro), search_path=self.job.repro.search_path)
        ran = run_repro(
            evolve(
                self.job,
                repro=repro,
                log_path=prober.store.log_path(key),
                zygote=zygote,
                hash_seed=zygote.hash_seed,
            )
        )
        return prober.record(prepared, lock, ran, started)

    def _place(self, files: Mapping[str, bytes | None]) -> None:
        """Put a candidate's files in place, restore those of the previous one, and delete stale bytecode."""
        originals = self.unchanged.originals
        wanted = {path: originals[path] for path in self._placed} | dict(files)
        for path, content in wanted.items():
            if path not in self._placed or self._placed[path] != content:
                exchange(self.packages, path, content)
                stem = Path(path).stem
                for stale in (self.pycache / path).parent.glob(f"{stem}.*.pyc"):
                    stale.unlink(missing_ok=True)
        self._placed = dict(files)


@define
class WarmEnvironments:
    """Copies of one environment, at most as many as `most`, so that lanes can exchange files at the same time.

    Another is opened when waiting for one would have cost as much as to open it: then no more than twice the time of
    the better choice is lost (ski rental; Karlin et al., "Competitive Snoopy Caching", Algorithmica 1988).
    """

    unchanged: Unchanged
    most: int
    _free: list[WarmEnvironment] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)
    _waited_s: float = field(default=0.0, init=False)
    _run_s: float = field(default=0.0, init=False)  # the last run
    _opening_s: float = field(default=0.0, init=False)
    _opened: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @classmethod
    @contextlib.contextmanager
    def opened(cls, unchanged: Unchanged, most: int) -> Iterator[WarmEnvironments]:
        """Open copies of an environment as they are needed, for as long as the context lasts."""
        copies = cls(unchanged, most)
        with copies._opened:
            yield copies

    def run(self, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe in a free copy and store the observation. Raises `ZygoteFailed`."""
        warm = self._free_one() or self._another(probe)
        began = time.monotonic()
        try:
            return warm.run(probe, lock, key)
        finally:
            with self._changed:
                self._run_s = time.monotonic() - began
                self._free.append(warm)
                self._changed.notify()

    def _free_one(self) -> WarmEnvironment | None:
        """A free copy, after a while if none is; None if another one must be opened, which counts already."""
        began = time.monotonic()
        with self._changed:
            while not self._free:
                is_worth_it = self._count == 0 or self._waited_s + self._run_s >= self._opening_s
                if is_worth_it and self._count < self.most:
                    self._count += 1
                    return None
                self._changed.wait()
            self._waited_s += time.monotonic() - began
            return self._free.pop()

    def _another(self, probe: Probe) -> WarmEnvironment:
        """Open a copy that is ready to fork a probe; one of the others, if that fails. Raises `ZygoteFailed`."""
        began = time.monotonic()
        try:
            warm = self._opened.enter_context(self.unchanged.copy())
            warm.start(probe.mixture.files.keys() if probe.mixture is not None else frozenset())
        except (ZygoteFailed, CannotBuild) as why:
            with self._changed:
                self._count -= 1
                self.most = self._count
            if not self.most or (other := self._free_one()) is None:
                raise ZygoteFailed(str(why)) from why
            return other
        self._opening_s = self._opening_s or time.monotonic() - began
        return warm
