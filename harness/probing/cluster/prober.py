"""Runs probes on other machines: resolves and looks up here, and runs the rest on workers like this machine.

`ClusterProber` replaces the local prober, so every search works the same way. A task carries the files of its mixture,
and the worker puts them into its own environment. This machine builds an environment only to inspect its files.

On a worker, `answer` runs a task with the ordinary prober, in the worker's own folders and with its index settings.
Each worker process has one prober, shared by its probes, with the GPUs that it finds. The observation is sent back and
removed from the worker.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging import tags

from harness._version import __version__
from harness.environment import Builder, Index, Interpreter, Resolver, Uv, Workspace, find_interpreter
from harness.environment.disk_space import remove_leftovers
from harness.environment.pip_settings import read_pip_settings
from harness.errors import HarnessError, HarnessFault, NoNetwork, NoSpace, NoWorkers, UserMistake
from harness.events import SILENT
from harness.model import Device, Observation, Outcome
from harness.probing import Prepared, Probe, Prober
from harness.probing.portable import PortableProbe
from harness.probing.probe import Around
from harness.redact import passed_secrets
from harness.run.devices import Gpu, find_gpus, of_one_kind
from harness.run.sandbox import Sandbox, SandboxMode, choose
from harness.store import Store

if TYPE_CHECKING:
    from harness.probing.cluster.dask import Connection

_KNOWN = (NoNetwork, NoSpace, NoWorkers, UserMistake)
_RESTART = "it changed after it joined; restart it and run this command again"


@cache
def worker_prober() -> Prober:
    """Return the prober of this worker process, made on first use with this machine's pip and uv settings."""
    workspace = Workspace.default()
    remove_leftovers(workspace)
    settings = read_pip_settings()
    uv = Uv(settings)
    interpreter = find_interpreter(None, uv)
    builder = Builder(uv, interpreter, workspace)
    return Prober(
        store=Store(workspace.root / "results"),  # never written: each task has its own
        resolver=Resolver(uv, Index(settings, workspace.index), interpreter, builder.builds),
        builder=builder,
        workspace=workspace,
        gpus=of_one_kind(find_gpus(os.environ)),
    )


def _interpreter(builder: Builder, version: str, cache_tag: str) -> Interpreter | None:
    """The Python of this machine with exactly this version and cache tag, or None."""
    found: Interpreter | None = builder.interpreter
    if found is not None and found.version != version:
        try:
            found = find_interpreter(version, builder.uv)
        except UserMistake:
            return None
    return found if found is not None and (found.version, found.cache_tag) == (version, cache_tag) else None


def _prober_for(task: PortableProbe, worker: Prober, interpreter: Interpreter, folder: Path) -> Prober:
    """The prober of a worker with the settings of a task; it stores observations in `folder`."""
    backend = {"UV_TORCH_BACKEND": task.torch_backend} if task.torch_backend else {}
    own = worker.builder.uv
    sandbox = _sandbox(task)
    uv = evolve(own, extra_environment={**own.extra_environment, **backend}, sandbox=sandbox)
    return evolve(
        worker,
        store=Store(folder / "results", passed_secrets(os.environ, task.pass_env)),
        builder=Builder(uv, interpreter, worker.workspace),
        pass_env=task.pass_env,
        capability=task.capability,
        invoked_from=folder,
        sandbox=sandbox,
        rights=task.rights,
        variables=task.variables,
    )


def _sandbox(task: PortableProbe) -> Sandbox | None:
    """Return the sandbox that the task requires, else the one configured for this machine.

    Raises `UserMistake` if it is required but unavailable.
    """
    asked = SandboxMode.REQUIRE if task.is_sandbox_required else ""
    mode = SandboxMode.of(os.environ, SandboxMode.OFF if task.rights == "unsandboxed" else asked)
    return choose(mode, network=task.rights == "network", reporter=SILENT)


def answer(task: PortableProbe, worker: Prober) -> tuple[Observation, bytes]:
    """Run a task with the prober of a worker; returns the observation and its compressed log.

    Only environments and bytecode stay there. Raises `Cancelled`, `NoWorkers` if the worker does not fit the task, and
    other errors of a few kinds, which can be sent.
    """
    try:
        interpreter = _interpreter(worker.builder, task.lock.python, task.cache_tag)
        if interpreter is None:
            raise NoWorkers(f"it has no Python {task.lock.python}", hint=_RESTART)
        if interpreter.platform != task.lock.platform:
            raise NoWorkers(f"it is {interpreter.platform}, the lock is for {task.lock.platform}", hint=_RESTART)
        with tempfile.TemporaryDirectory(prefix="harness-task-") as folder:
            return _run(task, _prober_for(task, worker, interpreter, Path(folder)))
    except HarnessError as error:
        kind = next((kind for kind in _KNOWN if isinstance(error, kind)), HarnessFault)
        raise kind(f"on a worker: {error.message}", hint=error.hint) from error


def _run(task: PortableProbe, prober: Prober) -> tuple[Observation, bytes]:
    probe = task.probe(prober.workspace)
    if prober.key(probe, task.lock) != task.key:
        gpu = prober.gpus[0].name if prober.gpus else "no GPU"
        raise NoWorkers(f"the run would be a different observation, because it has {gpu}", hint=_RESTART)
    observation = prober.execute(prober.prepare(probe))
    log = (prober.store.root / observation.log).read_bytes() if observation.log else b""
    return observation, log


@frozen
class ClusterProber(Around):
    """A prober over the workers of one cluster that match this machine.

    `prober` resolves, stores and looks up. Its GPU is `gpu`, the model that the workers have, so stored observations
    name the GPU that they ran on.
    """

    prober: Prober
    connection: Connection
    kind: MachineKind
    gpu: Gpu | None

    @classmethod
    def over(cls, connection: Connection, here: Prober) -> ClusterProber:
        """Make a prober with the settings of a local one. Raises `NoWorkers` if no worker matches this machine."""
        kind = kind_of(here.builder.interpreter)
        members = connection.members(kind)
        if not members:
            raise NoWorkers(
                f"no worker at {connection.address} matches this machine "
                f"({kind.platform}, Python {kind.python}, harness {kind.harness})",
                hint="a warning above says why one is left out; 'dask worker' starts one",
            )
        gpu = gpu_of(members.values())
        return cls(evolve(here, gpus=(gpu,) if gpu else ()), connection, kind, gpu)

    def slots(self, device: Device) -> int:
        """The number of probes that can run on a device at a time. Raises `NoWorkers` if no worker can run one."""
        members = self._who(device)
        if not members:
            raise NoWorkers(
                f"no worker at {self.connection.address} can run on a GPU",
                hint='the warnings above say why; dask worker ... --resources "gpu=1" declares a GPU',
            )
        return sum(member.slots(device) for member in members.values())

    def prepare(self, probe: Probe) -> Prepared:
        """Resolve a probe, or answer it from the store. Builds nothing.

        Raises `UserMistake` for a command, because its files are only on this machine.
        """
        if probe.repro.argv:
            raise UserMistake(
                "--run needs files of this machine, which the workers don't have",
                hint="write it as a repro (README, 'Write a repro'), or leave out --scheduler",
            )
        return self.prober.prepare(probe, builds=False)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a probe on a worker and store its observation on this machine.

        Raises `Cancelled`, `NoWorkers` if no worker can run it, and any error from the worker.
        """
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        if probe.lock is None:
            raise ValueError("nothing to run")
        self.store.put_repro(probe.repro)
        task = PortableProbe.of(probe, probe.lock, prepared.key, self.prober)
        seen, log = self.connection.run(task, lambda: self._who(probe.combination.device))
        observation = evolve(seen, drift=prepared.drift)
        # A failed install may be due to the worker's index settings; mixtures are cheap to repeat.
        if observation.outcome is Outcome.UNINSTALLABLE:
            return observation
        return self.store.put_from_elsewhere(observation, log)

    def _who(self, device: Device) -> dict[str, Member]:
        """The workers that may run a probe on a device, by address."""
        members = self.connection.members(self.kind)
        if device is not Device.CUDA:
            return members
        fit = {}
        for address, member in members.items():
            why = no_gpu_because(member)
            if why is None and self.gpu is not None and member.gpus[0].name != self.gpu.name:
                why = f"its GPU is {member.gpus[0].name}, not {self.gpu.name}"
            if why is None:
                fit[address] = member
            else:
                self.connection.warn_once(f"worker {address} gets no GPU probes: {why}")
        return fit


@frozen
class MachineKind:
    """What two machines must share for a run on one to count as a run on the other.

    `harness` is its version with a digest of its source; `tags` are the platform tags of the wheels that the machine
    accepts.
    """

    harness: str
    platform: str
    python: str
    cache_tag: str
    tags: tuple[str, ...]


@frozen
class Member:
    """One worker process: `threads` and `declared` GPUs according to Dask, `gpus` according to nvidia-smi.

    `kind.python` is empty if the worker lacks the wanted Python.
    """

    kind: MachineKind
    threads: int
    declared: int
    gpus: tuple[Gpu, ...]

    def slots(self, device: Device) -> int:
        """The number of probes that it can run at the same time."""
        return min(self.threads, self.declared) if device is Device.CUDA else self.threads


def look_around(python: str, cache_tag: str) -> tuple[MachineKind, tuple[Gpu, ...]]:
    """The kind of this worker process with this Python, if it has it, and its GPUs."""
    own = worker_prober()
    found = _interpreter(own.builder, python, cache_tag)
    return kind_of(found or own.builder.interpreter), own.gpus


def kind_of(interpreter: Interpreter) -> MachineKind:
    """The kind of this machine with an interpreter."""
    return MachineKind(
        harness=f"{__version__} ({code_digest()})",
        platform=interpreter.platform,
        python=interpreter.version,
        cache_tag=interpreter.cache_tag,
        tags=tuple(tags.platform_tags()),
    )


@cache
def code_digest() -> str:
    """A digest of the harness's source, which distinguishes two copies with the same version."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "_repros" in path.parts:  # only in an installed package; a task carries its repro
            continue
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def left_out_because(member: Member, kind: MachineKind) -> str | None:
    """Why a worker does not match this kind, None if it does."""
    its = member.kind
    if its.harness != kind.harness:
        return f"it has harness {its.harness}, this machine has {kind.harness}"
    if its.platform != kind.platform:
        return f"it is {its.platform}, this machine is {kind.platform}"
    if (its.python, its.cache_tag) != (kind.python, kind.cache_tag):
        return f"it has no Python {kind.python} ('uv python install {kind.python}' installs one)"
    if not set(kind.tags) <= set(its.tags):
        return f"its system libraries accept wheels up to {its.tags[0]}, this machine's up to {kind.tags[0]}"
    return None


def no_gpu_because(member: Member) -> str | None:
    """Why a worker can't run on a GPU, None if it can."""
    if not member.declared:
        return 'it declares no GPU (dask worker ... --resources "gpu=1")'
    if member.declared > len(member.gpus):
        return f"it declares gpu={member.declared} but sees {len(member.gpus)}"
    return None


def gpu_of(members: Iterable[Member]) -> Gpu | None:
    """Return a GPU of the model that probes run on, the first by name that a worker can use; None if there is none."""
    usable = (member.gpus[0] for member in members if no_gpu_because(member) is None)
    return min(usable, key=lambda gpu: gpu.name, default=None)
