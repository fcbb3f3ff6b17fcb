"""A session: the index, the store and the prober for one set of settings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.atomic import write_whole
from harness.environment import (
    Builder,
    DiskSpace,
    Index,
    Interpreter,
    Resolver,
    Uv,
    Workspace,
    find_interpreter,
    read_pip_settings,
)
from harness.environment.disk_space import remove_leftovers
from harness.environment.manifest import Ledger
from harness.environment.own_pages import for_device
from harness.environment.uv import TORCH_BACKEND
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.model import Device, Repro
from harness.model.text import parse_size
from harness.probing import Prober
from harness.probing.judge import ByHand, Person
from harness.probing.lanes import Lanes
from harness.probing.made import ByWriter
from harness.probing.resolutions import Resolutions
from harness.probing.trust import Trust
from harness.probing.warm import WarmProber
from harness.run.devices import Gpu, check_available, choose_device, find_gpus, of_one_kind, unavailable
from harness.run.launch import cpu_limit, digest_of_variables, usable_cpus
from harness.run.runner import Terms
from harness.run.sandbox import Sandbox, SandboxMode, choose
from harness.settings import COMMIT, NO_BACKEND, Settings
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from harness.probing.executors import RemoteProber
    from harness.probing.probe import Probing


_LANES = 2
_NOTE_AGE = 24 * 3600  # seconds after which the note of a results folder that does not exist is removed


@frozen
class Session:
    """What commands need to answer questions: where probes run, and the store of what is known.

    `local` runs probes on this machine, which has the GPUs `local_gpus`; `remote` lets an executor run them on
    other machines (None: it does not). `person` judges each run, None if the machine does. With `by_writer`, probes are
    first steps. `warm` may fork the runs of a search, None if each is a fresh process.
    """

    settings: Settings
    reporter: Reporter
    store: Store
    index: Index
    interpreter: Interpreter
    local: Prober
    local_gpus: tuple[Gpu, ...]
    remote: RemoteProber | None = None
    person: Person | None = None
    by_writer: ByWriter | None = None
    warm: WarmProber | None = None

    @property
    def prober(self) -> Probing:
        """What prepares and runs a probe."""
        if self.by_writer is not None:
            return self.by_writer
        prober = self.remote or self.warm or self.local
        return ByHand(prober, self.person) if self.person is not None else prober

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that probes can use."""
        return self.remote.prober.gpus if self.remote is not None else self.local_gpus

    @property
    def now(self) -> datetime:
        """The moment (UTC) that "today" means in everything that this session answers."""
        return self.local.resolutions.now

    @property
    def workspace(self) -> Workspace:
        """The harness's own cache."""
        return self.local.workspace

    def device_for(self, repro: Repro) -> tuple[Device, str]:
        """Choose the device for a repro; also returns a sentence that says why, and what a result on it means.

        Raises `UserMistake` if this machine lacks it, and no run of another machine is in the results.
        """
        device, why = choose_device(self.settings.device, repro.device, self.gpus, repro.ranks)
        if unavailable(device, self.gpus) and not any(run.device is device for run in self.store.observations()):
            check_available(device, self.gpus)
        return device, f"{why} (--device changes it)"

    def lane_count(self, device: Device, repro: Repro | None = None) -> int:
        """The number of lanes: as many as requested, but on a cluster at most its slots. Raises `NoWorkers`.

        By default a cluster has a lane for each slot, and this machine has one; it has two (on two cores or more) for
        runs on the CPU whose verdict can't depend on speed or on each other.
        """
        wanted = 1 if self.person is not None else self.settings.lanes
        if self.remote is None:
            return wanted or _local_lanes(device, repro, self.local.sandbox)
        slots = self.remote.slots(device)
        return min(wanted or slots, slots)

    def lanes(self, device: Device, repro: Repro) -> contextlib.closing[Lanes]:
        """The lanes for a repro on a device; on a cluster, each waits for a worker. Raises `NoWorkers`."""
        count = self.lane_count(device, repro)
        has_spare = self.remote is not None or count < (usable_cpus() or 1)
        return contextlib.closing(Lanes(count, builds_ahead=has_spare))


@contextlib.contextmanager
def warmed(session: Session) -> Iterator[Session]:
    """The session for a search whose runs on this machine may be forked."""
    with contextlib.closing(WarmProber(session.local, Trust(session.store, session.reporter))) as warm:
        yield evolve(session, warm=warm)


def local_session(settings: Settings, reporter: Reporter = SILENT, *, requires_python: str | None = None) -> Session:
    """Return a session on this machine; `requires_python` is the requirement of a repro.

    Raises `UserMistake` if no such Python is found.
    """
    workspace = Workspace.opened()
    remove_leftovers(workspace)
    gpus = find_gpus(os.environ)
    has_gpu = bool(gpus) and settings.device not in ("cpu", "emulated")
    own = settings.with_index_of(None).own_indexes
    if any(COMMIT in url for _, url in own):
        raise UserMistake(f"an index with {COMMIT} is for a question between commits", hint="harness bisect asks it")
    chosen = partial(for_device, settings.torch_backend, workspace, reporter, has_gpu=has_gpu)
    pip = evolve(read_pip_settings(), own=tuple((name, chosen(name, url)) for name, url in own))
    sandbox, rights = _sandbox(settings, reporter, workspace)
    # The builds of an index of its own are chosen from that index; uv would look at PyTorch's own as well.
    backend = _torch_backend(settings)
    backend = {TORCH_BACKEND: ""} if backend and "torch" in dict(own) else backend
    uv = Uv(pip, extra_environment=backend, sandbox=sandbox, scratch=workspace.scratch, ledger=Ledger.of(workspace))
    interpreter = find_interpreter(settings.python, uv, needs=requires_python)
    index = Index(pip, workspace.index)
    store = Store.opened(settings.results, settings.pass_env)
    store.remove_leftovers()
    _note_results(workspace, store.root)
    has_gpu_libraries = bool(gpus) or uv.has_torch_backend or settings.torch_backend is not None
    builder = Builder(
        uv,
        interpreter,
        workspace,
        disk_space=DiskSpace(workspace, settings.max_disk or _disk_limit(), reporter),
        size_of=index.size_of,
        has_gpu_libraries=has_gpu_libraries,
    )
    prober = Prober(
        store=store,
        resolutions=Resolutions(store, Resolver(index, builder.builds)),
        builder=builder,
        gpus=of_one_kind(gpus),
        terms=Terms(
            capability=settings.capability,
            pass_env=settings.pass_env,
            torch_backend=backend.get(TORCH_BACKEND, ""),
            rights=rights,
            variables=digest_of_variables(os.environ, settings.pass_env, cpu_limit()),
            is_sandbox_required=sandbox is not None and sandbox.is_required,
        ),
        invoked_from=Path.cwd(),
        reporter=reporter,
    )
    return Session(settings, reporter, store, index, interpreter, prober, gpus)


def results_with(key: str, folder: Path) -> Path:
    """The results folder that has the run of this key, or of one that starts so: `folder`, else another of this user.

    It is `folder`, too, if none has it.
    """
    known = [folder]
    for note in Workspace.opened().results.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removed it
            known.append(Path(note.read_text(encoding="utf-8")))
            # A question that has only begun has no folder yet.
            if not known[-1].is_dir() and note.stat().st_mtime < time.time() - _NOTE_AGE:
                note.unlink()
    pattern = f"observations/{key[:2]}/{key}*.json"
    return next((path for path in known if key.isalnum() and any(path.glob(pattern))), folder)


def _note_results(workspace: Workspace, folder: Path) -> None:
    path = workspace.results / hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if not path.exists():
        write_whole(path, str(folder))


def at_python(session: Session, python: str) -> Session:
    """Return the session with another Python of this machine. Raises `UserMistake` if there is none."""
    local = session.local
    interpreter = find_interpreter(python, local.builder.uv)
    builder = evolve(local.builder, interpreter=interpreter)
    resolutions = evolve(local.resolutions, resolver=Resolver(session.index, builder.builds))
    prober = evolve(local, resolutions=resolutions, builder=builder)
    settings = evolve(session.settings, python=python)
    return evolve(session, settings=settings, interpreter=interpreter, local=prober, remote=None, warm=None)


@contextlib.contextmanager
def open_session(
    settings: Settings, reporter: Reporter = SILENT, *, requires_python: str | None = None
) -> Iterator[Session]:
    """A session that runs probes on this machine, or on those of the executor in the settings.

    Raises `NoWorkers`, and `UserMistake` if Dask is not installed or no such Python is found.
    """
    with joined(local_session(settings, reporter, requires_python=requires_python)) as session:
        yield session


@contextlib.contextmanager
def joined(session: Session) -> Iterator[Session]:
    """The session, connected to the executor in its settings, if there is any. Raises as `open_session` does."""
    settings = session.settings
    if (address := settings.executor) is None:
        yield session
        return
    # Dask loads slowly, so only sessions with an executor import it.
    from harness.probing.executors import RemoteProber, connect

    executor = connect(address, session.reporter, lanes=settings.lanes, folder=session.store.root)
    with contextlib.closing(executor):
        yield evolve(session, remote=RemoteProber.over(executor, session.local, session.reporter))


def _sandbox(settings: Settings, reporter: Reporter, workspace: Workspace) -> tuple[Sandbox | None, str]:
    """The sandbox of all runs, and a word for what the user allows them beyond it ("" for nothing).

    Raises `UserMistake` if a required sandbox does not work.
    """
    mode = SandboxMode.of(os.environ, settings.sandbox)
    # An option is part of the question, so it needs a new run; the variable only describes the machine.
    rights = "unsandboxed" if settings.sandbox == SandboxMode.OFF else "network" if settings.network else ""
    return choose(mode, network=settings.network, reporter=reporter, hidden=(workspace.root,)), rights


def _local_lanes(device: Device, repro: Repro | None, sandbox: Sandbox | None) -> int:
    """The number of lanes on this machine: two on the CPU, unless speed or another run may change the verdict.

    Tests of a project may share ports and files, except in a sandbox without network: there each run has its own.
    """
    is_alone = sandbox is not None and not sandbox.network
    if repro is None or repro.launch or device is Device.CUDA or (repro.argv and not is_alone):
        return 1
    if repro.signature is not None and repro.signature.is_timed:
        return 1
    return min(_LANES, usable_cpus() or 1)


def _torch_backend(settings: Settings) -> dict[str, str]:
    """The variable of uv for the chosen builds of PyTorch. Raises `UserMistake` if they can't run on the device."""
    backend = settings.torch_backend
    if backend == "cpu" and settings.device == "cuda":
        raise UserMistake("--torch-backend cpu installs no CUDA", hint="leave out one of --device cuda and it")
    return {TORCH_BACKEND: "" if backend == NO_BACKEND else backend} if backend else {}


def _disk_limit() -> int | None:
    """The limit from HARNESS_MAX_DISK, also for commands without --max-disk."""
    text = os.environ.get("HARNESS_MAX_DISK")
    size = parse_size(text) if text else None
    if text and not size:
        raise UserMistake(f"HARNESS_MAX_DISK is {text!r}, not a size", hint="for example 20GiB")
    return size
