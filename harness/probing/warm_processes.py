"""Processes to fork runs of one environment with some files exchanged from.

`WarmEnvironment` forks runs in a copy of one environment, in which folders with exchanged files are copied and all
others are linked. Before each fork, the candidate's files are put in place, so that the fork finds them where any
process would. The first process to fork from leaves out only the modules that depend on the likeliest files, so that
its forks are quick. The first probe with another file replaces it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.environment import CannotBuild, watched_environment
from harness.environment.watched import exchange
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


@define
class WarmEnvironment:
    """A copy of an environment, and the process to fork from in it, which is started for the first fork.

    `packages` is its site-packages and `pycache` the folder of its bytecode. `graph` are the modules that the repro
    imports with their files, and the imports of each; those in `own` are imported by each run. `originals` are the
    unchanged contents of all files that a probe may exchange, by path relative to `packages`; None is a file that does
    not exist. The process has imported only modules that do not depend on the files in `left_out`.
    """

    prober: Prober
    job: Job
    packages: Path
    pycache: Path
    graph: tuple[dict[str, str], dict[str, list[str]]]
    own: frozenset[str]
    originals: Mapping[str, bytes | None]
    left_out: frozenset[str]
    fresh_s: float  # how long a fresh process of the repro takes, 0 if unknown
    parent: ForkProcess | None = None
    zygote: Zygote | None = field(default=None, init=False)
    _running: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _placed: dict[str, bytes | None] = field(factory=dict, init=False)
    _turn: threading.Lock = field(factory=threading.Lock, init=False)  # one candidate's files are in place at a time

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        prober: Prober,
        base: Probe,
        files: Iterable[str],
        first: AbstractSet[str],
        parent: ForkProcess | None = None,
    ) -> Iterator[WarmEnvironment]:
        """Copy the environment of an unchanged probe, with its lock, for as long as the context lasts.

        `files` may be exchanged, and those in `first` are exchanged first. The process is forked from
        `parent` if that has imported nothing that depends on the files. Raises `CannotFork`.
        """
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
        original = site_packages(built.folder)
        modules = {name: file.removeprefix(f"{original}/") for name, file in graph[0].items()}
        own = of_command(base.repro, modules, original)
        own |= own_modules(prober, modules) if base.repro.argv else frozenset()
        originals = {path: (original / path).read_bytes() if (original / path).is_file() else None for path in paths}
        with contextlib.ExitStack() as stack:
            mixture = Mixture(files=originals, label="to fork from")
            within = parent.zygote.result().scratch if parent is not None else None
            place = stack.enter_context(watched_environment(prober.builder, built, mixture=mixture, within=within))
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
                own,
                originals,
                frozenset(first).intersection(paths) or frozenset(paths),
                fresh.duration_s if fresh is not None else 0.0,
                parent,
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
        modules = preloadable(*self.graph, self.left_out, self.own)
        parent = None
        if self.parent is not None and not self.parent.has_any(self.graph[0].keys() - set(modules)):
            parent = self.parent.zygote.result()
        for names in (modules, before_any(self.left_out, modules, self.graph[0])):
            self._running.close()
            zygote = self._running.enter_context(started_zygote(self.job, names, parent))
            executed = {path.rpartition("-packages/")[2] for path in zygote.executed}
            if executed.isdisjoint(self.left_out):
                return zygote
        raise ZygoteFailed("an import always runs a file that changes")

    def run(self, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe and store the observation, when no other one is being run. Raises `ZygoteFailed`."""
        with self._turn:
            return self._run(probe, lock, key)

    def _run(self, probe: Probe, lock: Lock, key: str) -> Observation:
        begun, started = time.monotonic(), datetime.now(UTC)
        files = probe.mixture.files if probe.mixture is not None else {}
        zygote = self._start(files.keys())
        prepared = Prepared(probe, key, setup_s=time.monotonic() - begun)
        self._place(files)
        repro = evolve(probe.repro, timeout=self.limit(probe.repro), search_path=self.job.repro.search_path)
        ran = run_repro(
            evolve(
                self.job,
                repro=repro,
                log_path=self.prober.store.log_path(key),
                zygote=zygote,
                hash_seed=zygote.hash_seed,
            )
        )
        return self.prober.record(prepared, lock, ran, started)

    def limit(self, repro: Repro) -> float:
        """The seconds that a fork may take."""
        return limit_of(repro, self.fresh_s)

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
