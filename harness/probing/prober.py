"""Runs one probe: combination -> lock -> environment -> run -> observation."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.environment import (
    CannotBuild,
    Environment,
    find_interpreter,
    flaw_of,
    foreign_lock,
    watched_environment,
)
from harness.environment.interpreter import meets
from harness.environment.trees import NotKept, Trees
from harness.errors import MissingProgram
from harness.events import SILENT, Note, Reporter
from harness.model import Device, Lock, Observation, Outcome, normalized_name, parsed_version
from harness.model.repro import MAKE
from harness.model.text import listed
from harness.probing.probe import (
    Prepared,
    Probe,
    observation_of,
    observation_without_run,
    path_of,
    probe_key,
    seed_of,
    unresolvable_key,
)
from harness.run.devices import check_available, kind_of
from harness.run.lease import GpuPool, MemoryGate, NoGpu
from harness.run.outside import is_unchanged
from harness.run.process import ZygoteFailed, pause
from harness.run.programs import program_of
from harness.run.result import read_imports
from harness.run.runner import Job, Place, Recorded, Terms, run_repro, with_own_folders
from harness.store import is_kept

if TYPE_CHECKING:
    from harness.environment import Builder, Resolution, WatchedEnvironment, Workspace
    from harness.model import Mixture, Pin
    from harness.probing.resolutions import Resolutions
    from harness.run.devices import Gpu
    from harness.run.result import Ran
    from harness.run.sandbox import Sandbox
    from harness.store import Store

_SHOWN = 4
_AGAIN = 2  # how often a run is made again that the machine failed
_PAUSE_S = 1.0
_FAILED: dict[type[Exception], Outcome] = {
    MissingProgram: Outcome.NO_PROGRAM,
    NotKept: Outcome.NOT_MADE,
    CannotBuild: Outcome.UNINSTALLABLE,
    NoGpu: Outcome.DEVICE_FAILED,
}


@frozen
class Prober:
    """Runs probes with the locks of a resolver, a builder and a store.

    `gpus` are the GPUs for runs on CUDA, all of one model. Relative paths of a command start at `invoked_from`.
    `reporter` receives notes for the user. Runs are made on these `terms`. `memory` delays a run until it fits into
    memory beside the others.
    """

    store: Store
    resolutions: Resolutions
    builder: Builder
    gpus: tuple[Gpu, ...] = ()
    terms: Terms = field(factory=Terms)
    invoked_from: Path = field(factory=Path.cwd)
    reporter: Reporter = SILENT
    memory: MemoryGate = field(factory=MemoryGate, eq=False, repr=False)
    _current: set[str] = field(factory=set, init=False, eq=False, repr=False)
    _programs: set[str] = field(factory=set, init=False, eq=False, repr=False)

    @property
    def workspace(self) -> Workspace:
        """The harness's own cache."""
        return self.builder.workspace

    @property
    def sandbox(self) -> Sandbox | None:
        """What runs happen in, None without a sandbox."""
        return self.builder.uv.sandbox

    @property
    def trees(self) -> Trees:
        """The folders that runs are given."""
        return Trees(self.workspace)

    def resolve(self, probe: Probe) -> Resolution:
        """Return the lock of a probe, from the store if what the index said then is still so."""
        return self.resolutions.resolve(probe.combination, probe.near)

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe from the store, or None."""
        resolution = self.resolutions.known(probe.combination)
        if resolution is None:
            return None
        return self._stored(probe, self.key(probe, resolution.lock) if resolution.lock else unresolvable_key(probe))

    def prepare(self, probe: Probe, *, builds: bool = True, as_is: bool = False) -> Prepared:
        """Prepare a probe: its lock and environment, or an observation that answers it without a run.

        Without `builds` there is no environment, because the probe runs on another machine. With `as_is` it is not
        compared with its manifest, because the run will only guide a search. Raises `UserMistake` if
        nothing is known of it and it needs a GPU where there is none, and `UnknownProject`.
        """
        begun = time.monotonic()
        if probe.inside is not None:
            return self.prepare_in(str(probe.inside.absolute()), probe)
        if (why := _wrong_python(probe)) is not None:
            refused = self._unrun(probe, unresolvable_key(probe), Outcome.UNRESOLVABLE, why, None, begun, keep=False)
            return Prepared(probe, refused.key, observation=refused)
        if probe.lock is not None:
            return self.prepare_lock(probe, probe.lock, builds=builds, as_is=as_is)
        resolution = self.resolve(probe)
        if resolution.lock is None:
            key = unresolvable_key(probe)
            unresolvable = self._unrun(probe, key, Outcome.UNRESOLVABLE, resolution.words, None, begun)
            return Prepared(probe, key, observation=unresolvable)
        made = partial(self.prepare_lock, probe, begun=begun, builds=builds, as_is=as_is)
        prepared = made(resolution.lock, drift=resolution.drift)
        if prepared.observation is None or is_kept(prepared.observation) or probe.mixture is not None:
            return prepared
        # The index page may have been wrong when the lock was made, for example with other hashes.
        self.resolutions.forget(probe.combination)
        again = self.resolve(probe)
        if again.lock is None or again.lock == resolution.lock:
            self.resolutions.forget(probe.combination)
            return prepared
        return made(again.lock, drift=again.drift)

    def prepare_lock(
        self,
        probe: Probe,
        lock: Lock,
        *,
        drift: tuple[str, ...] = (),
        begun: float | None = None,
        builds: bool = True,
        as_is: bool = False,
    ) -> Prepared:
        """Prepare a probe with a known lock; see `prepare`.

        The result has an observation if the store has one, or if it is known that the probe can't run.
        """
        begun = time.monotonic() if begun is None else begun
        key = self.key(probe, lock)
        if (stored := self._stored(probe, key)) is not None:
            return Prepared(probe, key, observation=stored, cached=True)
        if (refusal := self._refusal(probe, lock)) is not None:
            refused = self._unrun(probe, key, *refusal, lock, begun, keep=False)
            return Prepared(probe, key, observation=refused)
        if not builds or (probe.ahead and self.builder.has_wheels(lock)):
            return Prepared(evolve(probe, lock=lock), key, drift=drift)
        probe = evolve(probe, ahead=False)
        # Compared now, while others run, so that its own run starts at once.
        try:
            built = self.builder.build(lock, recent=True, as_is=as_is)
        except CannotBuild as why:
            failed = self._unrun(probe, key, Outcome.UNINSTALLABLE, str(why), lock, begun)
            return Prepared(probe, key, observation=failed)
        return Prepared(probe, key, environment=built, drift=drift, setup_s=time.monotonic() - begun)

    def _refusal(self, probe: Probe, lock: Lock) -> tuple[Outcome, str] | None:
        """What prevents a run with a lock, and why; None if nothing that is known before."""
        if flaws := [tree.flaw for tree in probe.repro.given if tree.flaw]:
            return Outcome.NOT_MADE, "; ".join(flaws)
        check_available(probe.combination.device, self.gpus)
        if probe.mixture is not None and (flaw := flaw_of(probe.mixture, lock.python)):
            return Outcome.UNINSTALLABLE, flaw
        return None

    def prepare_in(self, python: str, probe: Probe) -> Prepared:
        """Prepare a probe to run in an existing environment, used as it is."""
        interpreter = find_interpreter(python, self.builder.uv, needs=probe.repro.requires_python)
        lock = foreign_lock(interpreter)
        check_available(probe.combination.device, self.gpus)
        # Its Python may be a copy, not a link to where the standard library is.
        environment = Environment(interpreter.path, lock, readable=interpreter.libraries)
        return Prepared(probe, self.key(probe, lock), environment=environment)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a prepared probe, on a GPU if it needs one, and store the observation.

        A run that the machine failed says nothing about packages: it is made again, twice at most, on another GPU if
        there is one. If no GPU was free in time, returns an observation that says so. It is not stored, so the next
        call tries again. Raises `Cancelled`.
        """
        if prepared.observation is not None:
            return prepared.observation
        if prepared.environment is None:
            raise ValueError("nothing to run")
        self.store.put_repro(prepared.probe.repro)
        run, used = self._run(prepared, prepared.environment, self.gpus), set[int]()
        for _ in range(_AGAIN):
            if run.outcome is not Outcome.MACHINE_FAILED:
                break
            used.add(run.machine.get("gpu", -1))
            others = tuple(gpu for gpu in self.gpus if gpu.index not in used)
            self.reporter.report(Note(f"a run is made again, because the machine failed: {run.detail}"))
            pause(_PAUSE_S)
            run = self._run(prepared, prepared.environment, others or self.gpus)
        return run

    def _run(self, prepared: Prepared, environment: Environment, gpus: tuple[Gpu, ...]) -> Observation:
        """Run, and run again if the environment may not have matched its lock."""
        probe, lock, begun = prepared.probe, environment.lock, time.monotonic()
        apart, retried = False, False
        while True:
            started = datetime.now(UTC)
            try:
                ran, altered = self._run_once(prepared, environment, gpus, apart=apart)
            except (MissingProgram, NotKept, CannotBuild, NoGpu) as why:
                # Other environments of this search had the program, so a release without it can't be judged.
                if isinstance(why, MissingProgram) and why.program not in self._programs:
                    raise
                return self._unrun(probe, prepared.key, _FAILED[type(why)], str(why), lock, begun, keep=False)
            # Another run may have changed a shared environment, and the sandbox refuses writes to it: run again alone.
            if not apart and (altered or _was_refused_a_write(ran, environment)):
                if prepared.zygote is not None:
                    raise ZygoteFailed("the run writes to its environment")
                apart = True
                continue
            differs = (
                _differing(environment.installed or lock, ran, probe.mixture) if environment.folder is not None else ""
            )
            if not differs:
                break
            if retried:
                return self._unrun(probe, prepared.key, Outcome.WRONG_ENVIRONMENT, differs, lock, begun, keep=False)
            retried = True
            self.builder.forget(lock)
        self._programs.add(program_of(probe.repro.argv))
        builds = tuple(pin for pin in (environment.installed or lock).pins if pin not in lock.pins)
        prepared = evolve(prepared, drift=(*prepared.drift, *environment.clashes))
        return self.record(prepared, lock, ran, started, altered=altered, installed=builds)

    def record(
        self,
        prepared: Prepared,
        lock: Lock,
        ran: Ran,
        started: datetime,
        *,
        altered: tuple[str, ...] = (),
        installed: tuple[Pin, ...] = (),
    ) -> Observation:
        """Store the observation of a run with a lock that was made now; returns it without secrets.

        `altered` are the files of its environment that the run changed, `installed` the pins that took the place of
        those of the lock. Raises `NoSpace`.
        """
        log = self.store.log_path(prepared.key).relative_to(self.store.root).as_posix()
        observation = observation_of(prepared, lock, ran, started=started.isoformat(timespec="seconds"), log=log)
        self._current.add(prepared.key)
        return self.store.put(evolve(observation, altered=altered, installed=installed))

    def current(self, key: str) -> Observation | None:
        """Return the stored observation if all that its run used besides its packages is still the same, else None.

        A run of this session is believed, so that a search sees the world in one state. None, too, if the machine
        failed the run.
        """
        stored = self.store.get(key)
        if stored is not None and stored.outcome is Outcome.MACHINE_FAILED:
            return None
        if stored is not None and key not in self._current:
            if not is_unchanged(stored.outside):
                return None
            self._current.add(key)
        return stored

    def _run_once(
        self, prepared: Prepared, environment: Environment, gpus: tuple[Gpu, ...], *, apart: bool
    ) -> tuple[Ran, tuple[str, ...]]:
        """Run a probe once, on one of these GPUs if it needs one; returns the result and what the run changed.

        With `apart` the run has an unshared environment that it may write to. Raises `CannotBuild` if the environment
        no longer exists and can't be rebuilt, `NotKept` if what it is given or what it wrote can't be used, and
        `NoGpu`.
        """
        probe = prepared.probe
        lock = environment.lock
        for tree in probe.repro.given:
            if self.trees.folder(tree.digest) is None:
                raise NotKept(f"what {tree.variable} names is no longer in the cache, or was changed there")
        alias = path_of(probe, lock) if probe.trace is None else 0  # the files to trace are named by their usual path
        zygote = prepared.zygote
        within = zygote.scratch if zygote is not None else None
        with watched_environment(
            self.builder,
            environment,
            mixture=probe.mixture,
            apart=apart,
            alias=alias,
            within=within,
            as_is=zygote is not None,
            is_writable=self.sandbox is None,
        ) as place:
            imports = self.imports_file(probe, place.environment.lock)
            is_recorded = (probe.trace is not None or probe.records_imports) and not imports.is_file()
            job = evolve(
                self.job(probe, lock, place),
                log_path=self.store.log_path(prepared.key),
                recorded=Recorded(probe.trace, imports if is_recorded else None),
                keep=self.trees.keep if probe.repro.step == MAKE else None,
                zygote=zygote,
            )
            if zygote is not None:
                if not probe.repro.argv:
                    job = evolve(job, repro=with_own_folders(probe.repro, place.scratch / "built"))
                job = evolve(job, hash_seed=zygote.hash_seed)
            writable = (*([place.scratch] if apart else []), *([place.bytecode] if place.bytecode else []))
            readable = (*job.place.readable, *environment.readable)
            job = evolve(job, place=evolve(job.place, readable=readable, writable=writable))
            pool = GpuPool(gpus if probe.combination.device is Device.CUDA else (), self.workspace.locks, self.reporter)
            with pool.lease(probe.repro.gpus) as gpu, self.memory.entered():
                ran = run_repro(evolve(job, variables=kind_of(gpu).show(gpu)) if gpu is not None else job)
                self.memory.note(ran.peak_memory or 0)
            machine = {**(gpu.facts if gpu is not None else {}), **ran.machine}
            if environment.folder is None:
                machine["in_place"] = str(environment.python)
            return evolve(ran, machine=machine), place.altered()

    def job(self, probe: Probe, lock: Lock, place: WatchedEnvironment) -> Job:
        """The job of a run in an environment; it has no log yet."""
        repro = probe.repro
        # Of the cache: its environment, which an alias or a mixture links to, and its folders.
        folders = [tree.folder for tree in repro.given] + [path for path in repro.search_path if path.startswith("/")]
        readable = (self.builder.location(lock).folder, place.scratch, *map(Path, folders))
        where = Place(
            python=place.environment.python,
            scratch=place.scratch,
            pycache=place.pycache,
            invoked_from=self.invoked_from,
            sandbox=self.sandbox,
            own=(self.workspace.root,),
            readable=readable,
            stubs=self.workspace.stubs,
        )
        return Job(repro, where, Path(), probe.combination.device, self.terms, hash_seed=seed_of(probe, lock))

    def _stored(self, probe: Probe, key: str) -> Observation | None:
        """Return the stored observation, or None if the verdict needs its log and the log can't be read."""
        stored = self.current(key)
        if stored is None or _stopped_earlier(stored, probe.repro.timeout):
            return None
        if stored.wrote and self.trees.folder(stored.wrote) is None:
            return None  # what it wrote is needed, and is gone
        if not stored.outcome.ran or not stored.log:
            return stored
        signature = probe.repro.signature
        if signature is not None and signature.output is None:
            return stored
        is_missed = signature is not None or self.store.log_path(key).exists()
        return stored if self.store.has_log(stored) or not is_missed else None

    def imports(self, probe: Probe, lock: Lock) -> tuple[dict[str, str], dict[str, list[str]]] | None:
        """Return the files of the modules that a probe loads, and the imports of each module.

        Runs the probe with a trace unless an earlier run recorded them. Returns None if there is no readable record.
        """
        traced = evolve(probe, trace=frozenset())
        if not self.imports_file(probe, lock).is_file():
            with contextlib.suppress(CannotBuild):
                built = self.builder.build(lock, recent=True)
                self.execute(Prepared(traced, self.key(traced, lock), environment=built))
        return self.recorded_imports(probe, lock)

    def recorded_imports(self, probe: Probe, lock: Lock) -> tuple[dict[str, str], dict[str, list[str]]] | None:
        """The same, None if no earlier run of the probe recorded its imports."""
        return read_imports(self.imports_file(probe, lock))

    def imports_file(self, probe: Probe, lock: Lock) -> Path:
        """The file with the imports of a probe. It is the same for every attempt and every set of traced files."""
        return self.workspace.imports / f"{self.key(evolve(probe, attempt=0, trace=None), lock)}.json"

    def key(self, probe: Probe, lock: Lock) -> str:
        """The key of a probe's observation with this lock on this machine."""
        return probe_key(probe, lock, self.gpus, self.terms)

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
        setup_s = time.monotonic() - begun
        observation = observation_without_run(probe, key, outcome, words, lock, setup_s=setup_s)
        return self.store.put(observation) if keep else self.store.without_secrets(observation)


def _wrong_python(probe: Probe) -> str | None:
    """Why the repro can't run with the interpreter of its combination, None if it can."""
    needs, python = probe.repro.requires_python, probe.combination.python
    return None if meets(needs, python) else f"the repro requires Python {needs}, this is {python}"


def _was_refused_a_write(ran: Ran, environment: Environment) -> bool:
    """Whether a run failed because it could not write to its environment, which is read-only in the sandbox."""
    if environment.folder is None or ran.outcome is Outcome.COMPLETED:
        return False
    return any("Read-only file system" in line and "site-packages" in line for line in ran.tail.splitlines())


def _stopped_earlier(stored: Observation, limit_s: float) -> bool:
    """Whether a stored run was stopped after less than this limit, which says nothing about a run with the limit."""
    return stored.outcome is Outcome.TIMED_OUT and not stored.mixture and stored.duration_s < limit_s


def _differing(lock: Lock, ran: Ran, mixture: Mixture | None) -> str:
    """Describe how the distributions that a run saw differ from the lock, "" if they don't.

    A run without a report is not compared. Distributions whose metadata a mixture exchanges are ignored, and so are
    additional ones, because a repro may extend its path.
    """
    installed = {normalized_name(name): version for name, version in ran.installed}
    if not ran.python or (not installed and "problems" in ran.machine):
        return ""
    exchanged = {path.split("/")[0] for path in mixture.files} if mixture is not None else set()
    free = {normalized_name(name.split("-")[0]) for name in exchanged if name.endswith(".dist-info")}
    differences = [
        f"{pin.name} {installed.get(pin.name) or 'missing'} instead of {pin.version}"
        for pin in lock.pins
        if pin.version and pin.name not in free and not same_version(pin.version, installed.get(pin.name, ""))
    ]
    return f"the run saw other packages than its lock: {listed(differences, _SHOWN)}" if differences else ""


def same_version(version: str, other: str) -> bool:
    """Whether two texts are the same version (PEP 440), such as 1.0 and 1.0.0."""
    return version == other or None is not parsed_version(version) == parsed_version(other)
