"""Dask as an executor: the connection to a scheduler, which lists its workers and runs tasks on them.

This is the only module that talks to Dask, which is an optional extra. If a worker is lost, Dask moves its
task to another one; if none is left, the task waits up to a minute for a new worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from harness.errors import HarnessError, HarnessFault, NoWorkers, UserMistake
from harness.model import Device
from harness.probing.executors import CONTINUE, Lost
from harness.probing.job import ProbeJob, Result
from harness.probing.node import Machine, answer, code_digest, look_around, running_while, worker_prober
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from distributed import Client, Future, Worker

    from harness.events import Reporter

_SCHEMES = ("tcp", "tls")

_CONNECT_S = 5.0
_JOIN_S = 15.0
_PORT = 8786  # Dask's default
_FETCH_S = 60.0  # enough for a long log on a slow network
_LOOK_S = 2.0
GPU = "gpu"  # the Dask resource: dask worker ... --resources "gpu=1"
_LOOK_AT_TASK_S = 0.2


def takes(address: str) -> bool:
    """Whether this is the address of a scheduler."""
    return address.partition("://")[0] in _SCHEMES


def connect(address: str, reporter: Reporter, *, lanes: int | None, folder: Path | None) -> DaskExecutor:  # noqa: ARG001
    """Connect to a scheduler, for example "tcp://192.0.2.1:8786".

    Raises `NoWorkers` if it can't be reached, `UserMistake` if Dask is not installed.
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise UserMistake(
            "--scheduler needs Dask distributed, which is not installed",
            hint="pip install 'regression-harness[dask]'",
        ) from error
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # the harness raises its own errors for what matters
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # A task carries the files of its mixture; Dask warns above 10 MB.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    try:
        client = Client(_knock(address), timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a Dask scheduler"
        raise NoWorkers(
            f"the scheduler at {address} can't be reached" + (f": {why}" if why else ""),
            hint="start one with 'dask scheduler' and pass its address: --scheduler tcp://HOST:8786",
        ) from error
    _check_scheduler(client, address)
    with contextlib.suppress(TimeoutError):  # workers that were started with the scheduler join a little later
        client.wait_for_workers(1, timeout=_JOIN_S)
    return DaskExecutor(client, address)


@define
class Sent:
    """A job that was sent: its future, the workers that may run it, its name, and when they are looked for again."""

    future: Future[Result]
    workers: Collection[str]
    name: str
    look_at: float


@define
class DaskExecutor:
    """An open connection to a scheduler."""

    client: Client
    address: str
    _known: dict[tuple[str, str, str], Machine | str] = field(factory=dict, init=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False)

    def close(self) -> None:
        """Release pending futures and disconnect."""
        with contextlib.suppress(Exception):  # the scheduler may have stopped
            self.client.close(timeout=_LOOK_S)

    def machines(self, python: str, cache_tag: str) -> Mapping[str, Machine | str]:
        """The current workers, by address."""
        with self._asking:
            addresses = self._addresses()
            if unknown := [address for address in addresses if (address, python, cache_tag) not in self._known]:
                answers = self.client.run(introduce, python, cache_tag, workers=unknown, on_error="return")
                for address, machine in answers.items():
                    known = machine if isinstance(machine, Machine) else _not_introduced(machine)
                    self._known[address, python, cache_tag] = known
            machines = ((address, self._known.get((address, python, cache_tag))) for address in addresses)
            return {address: machine for address, machine in machines if machine is not None}

    def submit(self, job: ProbeJob, machines: Collection[str]) -> Sent:
        """Let one of these workers answer a job."""
        future = self.client.submit(
            run_job,
            job,
            key=f"probe-{job.key}-{uuid.uuid4().hex[:8]}",
            pure=False,
            workers=list(machines),
            allow_other_workers=False,
            resources={GPU: 1} if job.probe.combination.device is Device.CUDA else None,
        )
        return Sent(future, machines, job.probe.repro.name, time.monotonic() + _LOOK_S)

    def poll(self, handle: Sent) -> Result | None:
        """Return the result of a job, None until there is one; see `Executor`."""
        from distributed import KilledWorker

        future = handle.future
        if not future.done():
            if time.monotonic() > handle.look_at:
                handle.look_at = time.monotonic() + _LOOK_S
                if set(handle.workers).isdisjoint(self._addresses()):
                    raise Lost("the workers that could run it have left")
            return None
        try:
            return future.result(timeout=_FETCH_S)
        except Cancelled:
            raise Lost("its worker was closed") from None
        except HarnessError:
            raise
        except KilledWorker as error:
            raise NoWorkers(
                f"{error.allowed_failures + 1} workers died while running {handle.name}",
                hint=f"see their logs or the job queue's; {CONTINUE}",
            ) from error
        except Exception as error:
            if future.cancelled() or self.client.status != "running":
                raise self._lost() from error
            raise HarnessFault(f"a worker failed with {type(error).__name__}: {error}") from error

    def cancel(self, handle: Sent) -> None:
        """Release a job's future; the scheduler may have stopped."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                handle.future.cancel()

    def _addresses(self) -> list[str]:
        if self.client.status != "running":
            raise self._lost()
        try:
            return list(self.client.nthreads())
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> NoWorkers:
        return NoWorkers(f"the scheduler at {self.address} is gone", hint=f"start it again; {CONTINUE}")


def _check_scheduler(client: Client, address: str) -> None:
    """Check that the scheduler can unpickle jobs, which pass through it. Raises `NoWorkers` if not."""
    is_same = False
    with contextlib.suppress(Exception):
        is_same = client.run_on_scheduler(code_digest) == code_digest()
    if not is_same:
        with contextlib.suppress(Exception):
            client.close(timeout=_LOOK_S)
        raise NoWorkers(
            f"the scheduler at {address} runs without this release of the harness",
            hint="install the same release there with the extra [dask], and start it from that environment",
        )


def _knock(address: str) -> str:
    """Return the full address of a scheduler, and fail fast if there is none: Dask's client would retry for long.

    Raises `OSError` if nothing listens there, `ValueError` if it is not a Dask scheduler.
    """
    from distributed.comm.addressing import parse_address, parse_host_port, unparse_host_port

    scheme, place = parse_address(address)
    if scheme not in _SCHEMES:
        raise ValueError(scheme)
    host, port = parse_host_port(place, _PORT)
    socket.create_connection((host, port), timeout=_CONNECT_S).close()
    whole = f"{scheme}://{unparse_host_port(host, port)}"
    try:
        # In a thread, since the caller may be in a running event loop (a notebook).
        with ThreadPoolExecutor(max_workers=1) as threads:
            identity = threads.submit(_identity, whole).result()
    except Exception as error:
        raise ValueError("not a Dask server") from error
    if identity["type"] != "Scheduler":
        raise ValueError(identity["type"])
    return whole


def _identity(address: str) -> dict[str, Any]:
    """Ask a Dask server for its identity."""
    from distributed import Security
    from distributed.core import rpc

    async def ask() -> dict[str, Any]:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            identity: dict[str, Any] = await asyncio.wait_for(server.identity(), _CONNECT_S)
            return identity

    return asyncio.run(ask())


def _not_introduced(error: Any) -> str:
    if "No module named" in str(error):
        return "the harness is not installed there (pip install 'regression-harness[dask]')"
    return f"it does not answer: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


async def introduce(python: str, cache_tag: str, dask_worker: Any) -> Machine:
    """Describe a worker, and whether it has this Python. Runs on the worker."""
    machine = await asyncio.to_thread(look_around, python, cache_tag)
    declared = int(dask_worker.state.total_resources.get(GPU, 0))
    why = 'it declares no GPU (dask worker ... --resources "gpu=1")'
    if declared > len(machine.gpus):
        declared, why = 0, f"it declares gpu={declared} but sees {len(machine.gpus)}"
    return evolve(machine, slots=dask_worker.state.nthreads, gpu_slots=declared, no_gpu=why)


def run_job(job: ProbeJob) -> Result:
    """Run a job on this thread's Dask worker; stops when it is cancelled or the worker closes.

    Dask does not stop a running task, it only forgets it, so a thread checks whether the task still exists.
    """
    from distributed import get_worker

    worker: Worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        state = worker.state.tasks.get(key)
        is_executing = state is not None and state.state == "executing"
        return is_executing and worker.status.name not in ("closing", "closed", "failed")

    with running_while(is_wanted, _LOOK_AT_TASK_S):
        return answer(job, worker_prober())
