"""Runs a probe on a worker with the ordinary prober, in the worker's own folders and with its index settings.

Each worker process has one prober, shared by its probes, with the GPUs that it finds. The observation is sent back and
removed from the worker.
"""

from __future__ import annotations

import os
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment import Builder, Builds, Index, Interpreter, Resolver, Uv, Workspace, find_interpreter
from harness.environment.disk_space import remove_leftovers
from harness.environment.pip_settings import read_pip_settings
from harness.errors import HarnessError, HarnessFault, NoNetwork, NoSpace, UserMistake
from harness.events import SILENT
from harness.probing import Prober
from harness.probing.portable import PortableProbe
from harness.redact import passed_secrets
from harness.run.devices import find_gpus
from harness.run.process import Cancelled
from harness.run.sandbox import Sandbox, SandboxMode, choose
from harness.store import Store

if TYPE_CHECKING:
    from harness.model import Observation

_KNOWN = (NoNetwork, NoSpace, UserMistake)


@frozen
class Trouble:
    """An error that a worker raised: its class, message and hint."""

    kind: type[HarnessError]
    message: str
    hint: str


@frozen
class Reply:
    """One of: an observation with its compressed log, a refusal with its reason, an error, or `stopped`.

    `stopped` means that the run was cancelled or that the worker is shutting down.
    """

    observation: Observation | None = None
    log: bytes = b""
    refused: str = ""
    trouble: Trouble | None = None
    stopped: bool = False


@frozen
class WorkerSetup:
    """The state that a worker process keeps between probes."""

    prober: Prober

    @classmethod
    def of_this_process(cls) -> WorkerSetup:
        """Set up with this machine's pip and uv settings and HARNESS_CACHE_DIR."""
        workspace = Workspace.default()
        remove_leftovers(workspace)
        settings = read_pip_settings()
        uv = Uv(settings)
        interpreter = find_interpreter(None, uv)
        prober = Prober(
            store=Store(workspace.root / "results"),  # never written: each task has its own
            resolver=Resolver(uv, Index(settings, workspace.index), interpreter),
            builder=Builder(uv, interpreter, workspace),
            workspace=workspace,
            gpus=find_gpus(os.environ),
        )
        return cls(prober)

    def interpreter(self, version: str, cache_tag: str) -> Interpreter | None:
        """Return the Python with exactly this version and cache tag, or None."""
        builder = self.prober.builder
        found: Interpreter | None = builder.interpreter
        if found is not None and found.version != version:
            try:
                found = find_interpreter(version, builder.uv)
            except UserMistake:
                return None
        return found if found is not None and (found.version, found.cache_tag) == (version, cache_tag) else None

    def prober_for(self, task: PortableProbe, interpreter: Interpreter, folder: Path) -> Prober:
        """Return this process's prober with the settings of a task; it stores observations in `folder`."""
        backend = {"UV_TORCH_BACKEND": task.torch_backend} if task.torch_backend else {}
        own = self.prober.builder.uv
        sandbox = _sandbox(task)
        uv = evolve(own, extra_environment={**own.extra_environment, **backend}, builds=Builds(sandbox))
        return evolve(
            self.prober,
            store=Store(folder / "results", passed_secrets(os.environ, task.pass_env)),
            builder=Builder(uv, interpreter, self.prober.workspace),
            pass_env=task.pass_env,
            capability=task.capability,
            invoked_from=folder,
            sandbox=sandbox,
            rights=task.rights,
        )


def _sandbox(task: PortableProbe) -> Sandbox | None:
    """Return the sandbox that the task requires, else the one configured for this machine.

    Raises `UserMistake` if it is required but unavailable.
    """
    asked = SandboxMode.REQUIRE if task.is_sandbox_required else ""
    mode = SandboxMode.of(os.environ, SandboxMode.OFF if task.rights == "unsandboxed" else asked)
    return choose(mode, network=task.rights == "network", reporter=SILENT)


_setting_up = threading.Lock()


@cache
def _worker_setup() -> WorkerSetup:
    return WorkerSetup.of_this_process()


def worker_setup() -> WorkerSetup:
    """Return the setup of this process, which is made on first use."""
    with _setting_up:
        return _worker_setup()


def answer(task: PortableProbe, setup: WorkerSetup, cancel: threading.Event | None = None) -> Reply:
    """Run a task and return the reply. Only environments and bytecode stay on the worker."""
    try:
        interpreter = setup.interpreter(task.lock.python, task.cache_tag)
        if interpreter is None:
            return Reply(refused=f"it has no Python {task.lock.python}")
        if interpreter.platform != task.lock.platform:
            return Reply(refused=f"it is {interpreter.platform}, the lock is for {task.lock.platform}")
        with tempfile.TemporaryDirectory(prefix="harness-task-") as folder:
            return _run(task, setup.prober_for(task, interpreter, Path(folder)), cancel)
    except Cancelled:
        return Reply(stopped=True)
    except HarnessError as error:
        kind = type(error) if isinstance(error, _KNOWN) else HarnessFault
        return Reply(trouble=Trouble(kind, error.message, error.hint))


def _run(task: PortableProbe, prober: Prober, cancel: threading.Event | None) -> Reply:
    probe = task.probe(prober.workspace)
    if prober.key(probe, task.lock) != task.key:
        gpu = prober.gpus[0].name if prober.gpus else "no GPU"
        return Reply(refused=f"the run would be a different observation, because it has {gpu}")
    observation = prober.execute(prober.prepare(probe, cancel=cancel), cancel=cancel)
    log = (prober.store.root / observation.log).read_bytes() if observation.log else b""
    return Reply(observation, log)
