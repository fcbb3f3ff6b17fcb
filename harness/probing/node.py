"""The machine that answers jobs: what it is, and how it runs one with the ordinary prober.

A job is run in this machine's own folders and with its index settings, or with the wheels in the job's folder. Each
process has one prober, shared by its jobs, with the GPUs that it finds. Only environments and bytecode stay here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging import tags

from harness._version import __version__
from harness.atomic import sha256_of
from harness.environment import Builder, Index, Interpreter, Resolver, Uv, Workspace, find_interpreter
from harness.environment.disk_space import remove_leftovers
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.errors import HarnessError, NoWorkers, UserMistake
from harness.events import SILENT
from harness.model import Device
from harness.probing.job import (
    SCHEMA,
    MachineKind,
    ProbeJob,
    Refused,
    Result,
    jobs_in,
    known_kind,
    place_of,
    write_problem,
)
from harness.probing.probe import host_id
from harness.probing.prober import Prober
from harness.probing.resolutions import Resolutions
from harness.records import read_record, write_record
from harness.redact import passed_secrets
from harness.run.devices import Gpu, find_gpus, of_one_kind
from harness.run.locks import claimed_folder
from harness.run.process import cancelled_by
from harness.run.sandbox import Sandbox, SandboxMode, choose
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RESTART = "it changed after it joined; restart it and run this command again"
_LOOK_S = 0.5
DESCRIBE, MACHINE = "describe.json", "machine.json"


@frozen
class Machine:
    """A machine, or one worker process on it, as it describes itself.

    `slots` is how many probes it runs at a time, and `gpu_slots` how many on a GPU; `no_gpu` says why there are none.
    `kind.python` is another one if it lacks the Python that was wanted. `host` is the name of its host in observations.
    """

    kind: MachineKind
    gpus: tuple[Gpu, ...] = ()
    slots: int = 1
    gpu_slots: int = 0
    no_gpu: str = "it has no GPU"
    host: str = ""

    def slots_for(self, device: Device) -> int:
        """The number of probes that it can run at the same time."""
        return min(self.slots, self.gpu_slots) if device is Device.CUDA else self.slots


@cache
def worker_prober() -> Prober:
    """Return the prober of this worker process, made on first use with this machine's pip and uv settings."""
    workspace = Workspace.opened()
    remove_leftovers(workspace)
    settings = read_pip_settings()
    uv = Uv(settings, scratch=workspace.scratch)
    interpreter = find_interpreter(None, uv)
    builder = Builder(uv, interpreter, workspace)
    store = Store(workspace.root / "results")  # never written: each job has its own
    return Prober(
        store=store,
        resolutions=Resolutions(store, Resolver(Index(settings, workspace.index), builder.builds)),
        builder=builder,
        gpus=of_one_kind(find_gpus(os.environ)),
    )


def look_around(python: str, cache_tag: str) -> Machine:
    """Describe this machine with this Python, if it has it."""
    own = worker_prober()
    interpreter = _interpreter(own.builder, python, cache_tag) or own.builder.interpreter
    return Machine(kind_of(interpreter), own.gpus, gpu_slots=len(own.gpus), host=host_id())


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
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "_repros" in path.parts:  # only in an installed package; a job carries its repro
            continue
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def answer(job: ProbeJob, worker: Prober, wheels: Path | None = None) -> Result:
    """Run a job with the prober of a worker; `wheels` has what it needs, if it must run without an index.

    Raises `Cancelled`, `NoWorkers` if this machine does not fit the job, and other errors of a few kinds, which can be
    sent.
    """
    try:
        interpreter = _interpreter(worker.builder, job.lock.python, job.cache_tag, is_near=job.is_carried)
        if interpreter is None:
            raise NoWorkers(f"it has no Python {job.lock.python}", hint=_RESTART)
        if interpreter.platform != job.lock.platform:
            raise NoWorkers(f"it is {interpreter.platform}, the lock is for {job.lock.platform}", hint=_RESTART)
        with claimed_folder(worker.workspace.scratch, "job-") as folder:
            return _run(job, _prober_for(job, worker, interpreter, folder, wheels))
    except HarnessError as error:
        raise known_kind(error) from error


def _run(job: ProbeJob, prober: Prober) -> Result:
    interpreter = prober.builder.interpreter
    lock = evolve(job.lock, python=interpreter.version)
    probe = evolve(job.unpacked(prober.workspace), lock=lock)
    gpu = prober.gpus[0].name if prober.gpus and probe.combination.device is Device.CUDA else ""
    if not job.is_carried and prober.key(probe, lock) != job.key:
        raise NoWorkers(
            f"the run would be a different observation, because it has {gpu or 'no GPU'}",
            hint=_RESTART,
        )
    observation = prober.execute(prober.prepare(probe))
    log = (prober.store.root / observation.log).read_bytes() if observation.log else b""
    # What else a run used is a matter of this machine.
    return Result(evolve(observation, outside={}), kind_of(interpreter), gpu, log)


def _interpreter(builder: Builder, version: str, cache_tag: str, *, is_near: bool = False) -> Interpreter | None:
    """The Python of this machine with exactly this version and cache tag, or None; with `is_near` of its minor."""
    interpreter: Interpreter | None = builder.interpreter
    if (
        interpreter is not None
        and interpreter.version != version
        and not (is_near and interpreter.cache_tag == cache_tag)
    ):
        try:
            interpreter = find_interpreter(version, builder.uv)
        except UserMistake:
            return None
    fits = (
        interpreter is not None and interpreter.cache_tag == cache_tag and (is_near or interpreter.version == version)
    )
    return interpreter if fits else None


def _prober_for(job: ProbeJob, worker: Prober, interpreter: Interpreter, folder: Path, wheels: Path | None) -> Prober:
    """The prober of a worker with the terms of a job; it stores observations in `folder`."""
    terms, own = job.terms, worker.builder.uv
    backend = {"UV_TORCH_BACKEND": terms.torch_backend} if terms.torch_backend and wheels is None else {}
    uv = evolve(own, extra_environment={**own.extra_environment, **backend}, sandbox=_sandbox(job))
    if wheels is not None:
        offline = {**uv.extra_environment, "UV_OFFLINE": "1"}
        uv = evolve(uv, settings=PipSettings(find_links=(str(wheels.absolute()),)), extra_environment=offline)
    return evolve(
        worker,
        store=Store(folder / "results", passed_secrets(os.environ, terms.pass_env)),
        builder=Builder(uv, interpreter, worker.workspace),
        terms=terms,
        invoked_from=folder,
    )


def _sandbox(job: ProbeJob) -> Sandbox | None:
    """Return the sandbox that the job requires, else the one configured for this machine.

    Raises `UserMistake` if it is required but unavailable.
    """
    required = SandboxMode.REQUIRE if job.terms.is_sandbox_required else ""
    mode = SandboxMode.of(os.environ, SandboxMode.OFF if job.terms.rights == "unsandboxed" else required)
    hidden = (Workspace.default().root,)
    return choose(mode, network=job.terms.rights == "network", reporter=SILENT, hidden=hidden)


def run_folder(folder: Path, tell: Callable[[str], None]) -> tuple[int, int]:
    """Run the job in a folder, those of a bundle, or describe this machine for an executor.

    A job with a result is not run again. Returns how many there are, and how many could not be run. Raises
    `UserMistake` if the folder has no job, `Cancelled` if its job is removed while it runs, and `NoSpace`.
    """
    if (folder / DESCRIBE).is_file():
        request = json.loads((folder / DESCRIBE).read_text(encoding="utf-8"))
        machine = look_around(request["python"], request["cache_tag"])
        write_record(folder / MACHINE, machine, SCHEMA)
        return 1, 0
    if (folder / "bundle.json").is_file():
        jobs = jobs_in(folder)
    elif (folder / "job.json").is_file():
        jobs = [folder]
    else:
        raise UserMistake(f"{folder} has no job", hint="name a folder made by harness bundle, or a job's own")
    return len(jobs), sum(not _run_in(job, f"{i} of {len(jobs)}", tell) for i, job in enumerate(jobs, 1))


def _run_in(folder: Path, position: str, tell: Callable[[str], None]) -> bool:
    """Run the job in a folder and write its result there; returns whether it has one."""
    try:
        job = ProbeJob.read(folder)
        if (folder / "result.json").is_file():
            tell(f"{position}  {job.label}: already run")
            return True
        tell(f"{position}  {job.label}: running, at most {job.probe.repro.timeout:g} s")
        wheels = _wheels_of(job, folder) if job.is_carried else None
        with running_while((folder / "job.json").exists, _LOOK_S):  # whoever no longer wants it removes it
            result = answer(job.with_archives(folder), worker_prober(), wheels)
        if job.is_carried and not result.observation.outcome.ran:
            raise NoWorkers(result.observation.detail, hint="repair it here, and run the bundle again")
        result.write(folder)
    except (Refused, HarnessError) as error:
        trouble = UserMistake(str(error)) if isinstance(error, Refused) else error
        write_problem(folder, trouble)
        tell(f"{position}  could not run: {trouble.message}")
        return False
    tell(f"{position}  {job.label}: {result.observation.detail or result.observation.outcome.value}")
    return True


def _wheels_of(job: ProbeJob, folder: Path) -> Path:
    """The folder with all wheels of a job. Raises `Refused` if one is missing or damaged."""
    wheels = place_of(folder, "wheels")
    for pin in job.wheels:
        path = wheels / pin.wheel
        if not path.is_file() or sha256_of(path) != pin.sha256:
            raise Refused(f"{pin.wheel} is {'damaged' if path.is_file() else 'missing'} in {wheels.name}")
    return wheels


@contextlib.contextmanager
def running_while(is_wanted: Callable[[], bool], every_s: float) -> Iterator[None]:
    """Cancel what this thread does in the context as soon as nobody wants it any more."""
    unwanted, ended = threading.Event(), threading.Event()

    def look() -> None:
        while not ended.wait(every_s):
            if not is_wanted():
                unwanted.set()
                return

    looking = threading.Thread(target=look, name="unwanted", daemon=True)
    looking.start()
    try:
        with cancelled_by(unwanted):
            yield
    finally:
        ended.set()
        looking.join()


def read_machine(folder: Path) -> Machine | None:
    """Return what a machine wrote about itself in a folder, None if there is nothing."""
    return read_record(folder / MACHINE, Machine, SCHEMA)
