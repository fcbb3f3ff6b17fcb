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

from attrs import define, field

from harness.errors import HarnessError, HarnessFault, NoWorkers, UserMistake
from harness.events import Reporter, Warned
from harness.model import Device, Observation
from harness.probing.cluster.prober import (
    MachineKind,
    Member,
    answer,
    code_digest,
    left_out_because,
    look_around,
    worker_prober,
)
from harness.probing.portable import PortableProbe
from harness.run.process import Cancelled, cancelled_by, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Client, Future, Worker

SCHEMES = ("tcp", "tls")

_CONNECT_S = 5.0
_JOIN_S = 15.0
_PORT = 8786  # Dask's default
_FETCH_S = 60.0  # enough for a long log on a slow network
_TICK_S = 0.1
_LOOK_S = 2.0
_WAIT_FOR_WORKERS_S = 60.0
GPU = "gpu"  # the Dask resource: dask worker ... --resources "gpu=1"
_LOOK_AT_TASK_S = 0.2
_CONTINUE = "run the same command again to continue"


@define
class Connection:
    """An open connection. `reporter` receives one warning about each worker that is left out."""

    client: Client
    address: str
    reporter: Reporter
    _known: dict[tuple[str, MachineKind], Member | None] = field(factory=dict, init=False)
    _warned: set[str] = field(factory=set, init=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False)

    @classmethod
    def open(cls, address: str, reporter: Reporter) -> Connection:
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
        connection = cls(client, address, reporter)
        connection._check_scheduler()
        with contextlib.suppress(TimeoutError):  # workers that were started with the scheduler join a little later
            client.wait_for_workers(1, timeout=_JOIN_S)
        return connection

    def close(self) -> None:
        """Release pending futures and disconnect."""
        with contextlib.suppress(Exception):  # the scheduler may have stopped
            self.client.close(timeout=_LOOK_S)

    def members(self, kind: MachineKind) -> dict[str, Member]:
        """Return the current workers of a kind, by address. Warns once about each worker that is left out, and why."""
        with self._asking:
            addresses = self._addresses()
            unknown = [address for address in addresses if (address, kind) not in self._known]
            for address, member in self._introduced(unknown, kind).items():
                introduced = isinstance(member, Member)
                why = left_out_because(member, kind) if introduced else _not_introduced(member)
                if why is not None:
                    self.warn_once(f"worker {address} is left out: {why}")
                self._known[address, kind] = member if why is None else None
            found = ((address, self._known.get((address, kind))) for address in addresses)
            return {address: member for address, member in found if member is not None}

    def warn_once(self, sentence: str) -> None:
        """Report a warning unless it was reported before."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self.reporter.report(Warned(sentence))

    def run(self, task: PortableProbe, may_run: Callable[[], dict[str, Member]]) -> tuple[Observation, bytes]:
        """Let one of the workers that `may_run` returns call `answer` with a task, and return or raise the same.

        Raises `Cancelled`, any error of the worker, and `NoWorkers` if none is left or the scheduler is lost.
        """
        while True:
            addresses = self._waited_for(may_run)
            future = self.client.submit(
                run_task,
                task,
                key=f"probe-{task.key}-{uuid.uuid4().hex[:8]}",
                pure=False,
                workers=addresses,
                allow_other_workers=False,
                resources={GPU: 1} if task.combination.device is Device.CUDA else None,
            )
            try:
                reply = self._awaited(future, addresses, task)
            finally:
                self._give_back(future)
            if reply is not None:
                return reply

    def _waited_for(self, may_run: Callable[[], dict[str, Member]]) -> list[str]:
        """Return the addresses of the workers to choose from; waits for a worker if there are none."""
        until = time.monotonic() + _WAIT_FOR_WORKERS_S
        while True:
            if addresses := list(may_run()):
                return addresses
            if time.monotonic() > until:
                raise NoWorkers(
                    f"no worker at {self.address} matches this machine any more",
                    hint=f"start workers again; {_CONTINUE}",
                )
            pause(_LOOK_S)

    def _awaited(
        self, future: Future[tuple[Observation, bytes]], addresses: list[str], task: PortableProbe
    ) -> tuple[Observation, bytes] | None:
        """Return the reply, or None if the worker closes or all that could run the task have left."""
        from distributed import KilledWorker

        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        look_at = time.monotonic() + _LOOK_S
        while not done.wait(_TICK_S):
            pause()
            if time.monotonic() > look_at:
                look_at = time.monotonic() + _LOOK_S
                if set(addresses).isdisjoint(self._addresses()):
                    return None
        try:
            return future.result(timeout=_FETCH_S)
        except Cancelled:
            return None
        except HarnessError:
            raise
        except KilledWorker as error:
            raise NoWorkers(
                f"{error.allowed_failures + 1} workers died while running {task.repro.name}",
                hint=f"see their logs or the job queue's; {_CONTINUE}",
            ) from error
        except Exception as error:
            if future.cancelled() or self.client.status != "running":
                raise self._lost() from error
            raise HarnessFault(f"a worker failed with {type(error).__name__}: {error}") from error

    def _give_back(self, future: Future[Any]) -> None:
        """Release a future; the scheduler may have stopped."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                future.cancel()

    def _addresses(self) -> list[str]:
        if self.client.status != "running":
            raise self._lost()
        try:
            return list(self.client.nthreads())
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> NoWorkers:
        return NoWorkers(f"the scheduler at {self.address} is gone", hint=f"start it again; {_CONTINUE}")

    def _introduced(self, addresses: list[str], kind: MachineKind) -> dict[str, Any]:
        """The workers' descriptions of themselves by address, or the exception of a worker that fails."""
        if not addresses:
            return {}
        answers: dict[str, Any] = self.client.run(
            introduce, kind.python, kind.cache_tag, workers=addresses, on_error="return"
        )
        return answers

    def _check_scheduler(self) -> None:
        """Check that the scheduler can unpickle tasks, which pass through it. Raises `NoWorkers` if not."""
        is_same = False
        with contextlib.suppress(Exception):
            is_same = self.client.run_on_scheduler(code_digest) == code_digest()
        if not is_same:
            self.close()
            raise NoWorkers(
                f"the scheduler at {self.address} runs without this release of the harness",
                hint="install the same release there with the extra [dask], and start it from that environment",
            )


def _knock(address: str) -> str:
    """Return the full address of a scheduler, and fail fast if there is none: Dask's client would retry for long.

    Raises `OSError` if nothing listens there, `ValueError` if it is not a Dask scheduler.
    """
    from distributed.comm.addressing import parse_address, parse_host_port, unparse_host_port

    scheme, place = parse_address(address)
    if scheme not in SCHEMES:
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


async def introduce(python: str, cache_tag: str, dask_worker: Any) -> Member:
    """Describe a worker, and whether it has this Python. Runs on the worker."""
    kind, gpus = await asyncio.to_thread(look_around, python, cache_tag)
    declared = int(dask_worker.state.total_resources.get(GPU, 0))
    return Member(kind, dask_worker.state.nthreads, declared, gpus)


def run_task(task: PortableProbe) -> tuple[Observation, bytes]:
    """Run a task on this thread's Dask worker; stops when the task is cancelled or the worker closes.

    Dask does not stop a running task, it only forgets it, so a thread checks whether the task still exists.
    """
    from distributed import get_worker

    worker: Worker = get_worker()
    key = worker.get_current_task()
    unwanted, ended = threading.Event(), threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_AT_TASK_S):
            state = worker.state.tasks.get(key)
            if state is None or state.state != "executing" or worker.status.name in ("closing", "closed", "failed"):
                unwanted.set()
                return

    looking = threading.Thread(target=look, name="unwanted", daemon=True)
    looking.start()
    try:
        with cancelled_by(unwanted):
            return answer(task, worker_prober())
    finally:
        ended.set()
        looking.join()
