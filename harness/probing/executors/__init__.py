"""Probes on other machines: the protocol of executors, and the prober that lets one of them answer jobs.

`RemoteProber` replaces the local prober, so every search works the same way. It resolves and looks up here, and sends
jobs; this machine builds an environment only to inspect its files.

An executor is one module here: `takes` says whether an address is one of its own, and `connect` opens it. Its machines
describe themselves by `node.look_around` and answer jobs by `node.answer`. Nothing else knows which executor it is.
"""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from attrs import evolve, field, frozen

from harness.errors import NoWorkers, UserMistake
from harness.events import Reporter, Warned
from harness.model import Device, Observation, Outcome
from harness.probing.job import MachineKind, ProbeJob, Refused, Result
from harness.probing.node import Machine, kind_of
from harness.probing.probe import Around, Prepared, Probe, observation_without_run
from harness.probing.prober import Prober
from harness.run.devices import Gpu
from harness.run.process import pause

_TICK_S = 0.05
_LOOK_S = 2.0
_WAIT_S = 60.0
TRIES = 3
CONTINUE = "run the same command again to continue"


class Lost(Exception):
    """A job ended without a result, for a reason that has nothing to do with its probe; the message says which."""


class Executor(Protocol):
    """Runs jobs on other machines. Its methods are called from several threads."""

    @property
    def address(self) -> str:
        """What the user typed to name it."""

    def machines(self, python: str, cache_tag: str) -> Mapping[str, Machine | str]:
        """The machines that it has now, by name, described for a Python; a text says why one does not answer.

        Raises `NoWorkers` if it has gone.
        """

    def submit(self, job: ProbeJob, machines: Collection[str]) -> Any:
        """Let one of these machines answer a job; returns a handle of the job."""

    def poll(self, handle: Any) -> Result | None:
        """Return the result of a job, None until there is one.

        Raises `Lost` if there will be none, `Refused` if it is damaged, and any error of the machine.
        """

    def cancel(self, handle: Any) -> None:
        """End a job if it still waits or runs, and forget it."""

    def close(self) -> None:
        """End all jobs, and disconnect."""


def connect(address: str, reporter: Reporter, *, lanes: int | None = None, folder: Path | None = None) -> Executor:
    """Connect to the executor that takes an address; if none does, to Dask's.

    `lanes` is how many jobs the user wants at a time, and jobs may be written below `folder`. Raises `NoWorkers` if
    nothing answers there, `UserMistake` if what the executor needs is not installed.
    """
    modules = [import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    chosen = next((module for module in modules if module.takes(address)), None)
    chosen = chosen or import_module(f"{__name__}.dask")
    executor: Executor = chosen.connect(address, reporter, lanes=lanes, folder=folder)
    return executor


@frozen
class RemoteProber(Around):
    """A prober over those machines of one executor that match this one.

    `prober` resolves, stores and looks up. Its GPU is `gpu`, the model that the machines have, so stored observations
    name the GPU that they ran on. `reporter` gets one warning about each machine that is left out. With `host`, jobs
    go to that host only, as long as it is there.
    """

    prober: Prober
    executor: Executor
    kind: MachineKind
    reporter: Reporter
    gpu: Gpu | None = None
    host: str = ""
    warned: set[str] = field(factory=set, eq=False, repr=False)
    answered: set[str] = field(factory=set, eq=False, repr=False)  # keys

    @classmethod
    def over(cls, executor: Executor, local: Prober, reporter: Reporter) -> RemoteProber:
        """Make a prober with the settings of a local one. Raises `NoWorkers` if no machine matches this one."""
        kind = kind_of(local.builder.interpreter)
        remote = cls(local, executor, kind, reporter)
        machines = remote.machines(Device.CPU)
        if not machines:
            raise NoWorkers(
                f"no worker at {executor.address} matches this machine "
                f"({kind.platform}, Python {kind.python}, harness {kind.harness})",
                hint="a warning above says why one is left out",
            )
        usable = (machine.gpus[0] for machine in machines.values() if machine.gpu_slots)
        gpu = min(usable, key=lambda gpu: gpu.name, default=None)
        return evolve(remote, prober=evolve(local, gpus=(gpu,) if gpu else ()), gpu=gpu)

    def machines(self, device: Device) -> dict[str, Machine]:
        """The machines that may run a probe on a device, by name."""
        fit = {}
        for name, machine in self.executor.machines(self.kind.python, self.kind.cache_tag).items():
            if isinstance(machine, str):
                self._warn_once(f"worker {name} is left out: {machine}")
            elif (why := left_out_because(machine.kind, self.kind)) is not None:
                self._warn_once(f"worker {name} is left out: {why}")
            elif device is Device.CUDA and (why := self._no_gpu_because(machine)) is not None:
                self._warn_once(f"worker {name} gets no GPU probes: {why}")
            else:
                fit[name] = machine
        return fit

    def _no_gpu_because(self, machine: Machine) -> str | None:
        if not machine.gpu_slots:
            return machine.no_gpu
        if self.gpu is not None and machine.gpus[0].name != self.gpu.name:
            return f"its GPU is {machine.gpus[0].name}, not {self.gpu.name}"
        return None

    def _warn_once(self, sentence: str) -> None:
        if sentence not in self.warned:
            self.warned.add(sentence)
            self.reporter.report(Warned(sentence))

    def slots(self, device: Device) -> int:
        """The number of probes that can run on a device at a time. Raises `NoWorkers` if no machine can run one."""
        machines = self.machines(device)
        if not machines:
            raise NoWorkers(f"no worker at {self.executor.address} can run on a GPU", hint="the warnings above say why")
        return sum(machine.slots_for(device) for machine in machines.values())

    def prepare(self, probe: Probe) -> Prepared:
        """Resolve a probe, or answer it from the store. Builds nothing.

        Raises `UserMistake` for a command without a project that names a file, which only this machine has.
        """
        own = [word for word in probe.repro.argv if not probe.repro.project and Path(word).exists()]
        if own:
            raise UserMistake(
                f"--run names {own[0]}, which only this machine has",
                hint="--project FOLDER sends a copy of its folder to where the runs are",
            )
        return self.prober.prepare(probe, builds=False)

    def execute(self, prepared: Prepared) -> Observation:
        """Let a machine run a probe, and store its observation here.

        A job that was lost, or whose result is refused, is sent again, twice, and one that a machine failed, to other
        hosts. One that is lost where others were answered has failed with its machine. Raises `Cancelled`, `NoWorkers`
        if no machine can run it, and any error of the machine.
        """
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        if probe.lock is None:
            raise ValueError("nothing to run")
        self.store.put_repro(probe.repro)
        job = evolve(ProbeJob.of(probe, probe.lock, prepared.key, self.prober), drift=prepared.drift)
        try:
            result, observation = self._answered_where_it_works(job)
        except Lost as lost:
            if not self.answered:
                raise NoWorkers(str(lost), hint=CONTINUE) from lost
            key, failure = prepared.key, Outcome.MACHINE_FAILED
            return observation_without_run(probe, key, failure, str(lost), probe.lock, setup_s=0.0)
        self.answered.add(prepared.key)
        # A failed install may be due to the machine's index settings; mixtures are cheap to repeat.
        if observation.outcome is Outcome.UNINSTALLABLE:
            return observation
        return self.store.put_from_elsewhere(observation, result.log)

    def _answered_where_it_works(self, job: ProbeJob) -> tuple[Result, Observation]:
        """Return the result of a job, of another host if its machine fails it. Raises `Lost` after three tries."""
        device, failed = job.probe.combination.device, set[str]()
        result, observation = self._answered(job, self._not_wanted(device))
        while observation.outcome is Outcome.MACHINE_FAILED and len(failed) < TRIES:
            failed.add(str(observation.machine.get("host", "")))
            if all(machine.host in failed for machine in self.machines(device).values()):
                break
            result, observation = self._answered(job, failed)
        return result, observation

    def _not_wanted(self, device: Device) -> set[str]:
        hosts = {machine.host for machine in self.machines(device).values()}
        return hosts - {self.host} if self.host in hosts else set()

    def _answered(self, job: ProbeJob, avoided: Collection[str]) -> tuple[Result, Observation]:
        """Return the result of a job, which no host in `avoided` gets while there is another one.

        Raises `Lost` after three tries.
        """
        why = ""
        for _ in range(TRIES):
            handle = self.executor.submit(job, self._waited_for(job.probe.combination.device, avoided))
            try:
                while (result := self.executor.poll(handle)) is None:
                    pause(_TICK_S)
                return result, self._accepted(result, job)
            except (Lost, Refused) as error:
                why = str(error)
            finally:
                self.executor.cancel(handle)
        raise Lost(f"{job.probe.repro.name} has no result after {TRIES} tries: {why}")

    def _accepted(self, result: Result, job: ProbeJob) -> Observation:
        """The observation of a result. Raises `Refused` if it is of another machine kind, or not of the job."""
        if why := left_out_because(result.kind, self.kind):
            raise Refused(f"it was run elsewhere: {why}")
        return result.of(job)

    def _waited_for(self, device: Device, avoided: Collection[str]) -> Collection[str]:
        """Return the names of the machines to choose from; waits for one if there are none."""
        until = time.monotonic() + _WAIT_S
        while not (machines := self.machines(device)):
            if time.monotonic() > until:
                raise NoWorkers(
                    f"no worker at {self.executor.address} matches this machine any more",
                    hint=f"start workers again; {CONTINUE}",
                )
            pause(_LOOK_S)
        return tuple(name for name, machine in machines.items() if machine.host not in avoided) or tuple(machines)


def left_out_because(its: MachineKind, kind: MachineKind) -> str | None:
    """Why a machine does not match this kind, None if it does."""
    if its.harness != kind.harness:
        return f"it has harness {its.harness}, this machine has {kind.harness}"
    if its.platform != kind.platform:
        return f"it is {its.platform}, this machine is {kind.platform}"
    if (its.python, its.cache_tag) != (kind.python, kind.cache_tag):
        return f"it has no Python {kind.python} ('uv python install {kind.python}' installs one)"
    if not set(kind.tags) <= set(its.tags):
        return f"its system libraries accept wheels up to {its.tags[0]}, this machine's up to {kind.tags[0]}"
    return None
