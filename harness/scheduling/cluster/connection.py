"""The connection to a Dask scheduler: who its workers are, and one order at a time brought to an end.

The only module that speaks to Dask from here; Dask itself is an optional extra. A worker that is lost takes nothing
with it: Dask gives its order to another one, and where none is left the order waits for one for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from attrs import define, field

from harness.errors import HarnessFault, NoWorkers, UserMistake
from harness.events import Reporter, Warned
from harness.model import Device
from harness.run.process import Cancelled
from harness.scheduling.cluster.members import GPU, Kind, Member, code_digest, introduce, left_out_because
from harness.scheduling.cluster.order import Order, Reply
from harness.scheduling.cluster.worker import run_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Client, Future

_CONNECT_S = 5.0
_PORT = 8786  # Dask's own
_FETCH_S = 60.0  # a long log on a slow line
_TICK_S = 0.1
_LOOK_S = 2.0
_WAIT_FOR_WORKERS_S = 60.0
_GO_ON = "the same command goes on where it stopped"


@define
class Connection:
    """An open connection. `reporter` is warned of each worker that is left out, once."""

    client: Client
    address: str
    reporter: Reporter
    _known: dict[tuple[str, Kind], Member | None] = field(factory=dict, init=False)
    _told: set[str] = field(factory=set, init=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False)

    @classmethod
    def open(cls, address: str, reporter: Reporter) -> Connection:
        """Connect to a scheduler such as "tcp://192.0.2.1:8786".

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
            if name.startswith("distributed"):  # what matters of it is told as an error of ours
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        # The files of a mixture travel with their order; Dask warns of more than 10 MB of them.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        try:
            client = Client(_knock(address), timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "what is there is no scheduler"
            raise NoWorkers(
                f"the scheduler at {address} can't be reached" + (f": {why}" if why else ""),
                hint="start one with 'dask scheduler', and give its address: --scheduler tcp://HOST:8786",
            ) from error
        connection = cls(client, address, reporter)
        connection._check_scheduler()
        return connection

    def close(self) -> None:
        """Give back what is still asked for, and hang up."""
        with contextlib.suppress(Exception):  # a scheduler that is gone can't be told
            self.client.close(timeout=_LOOK_S)

    def members(self, kind: Kind) -> dict[str, Member]:
        """The workers there are now that are of a kind, by address; the others are told once, with the reason."""
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
        """Warn of something that is found again and again."""
        if sentence not in self._told:
            self._told.add(sentence)
            self.reporter.report(Warned(sentence))

    def run(
        self, order: Order, may_run: Callable[[], dict[str, Member]], *, cancel: threading.Event | None = None
    ) -> Reply:
        """Bring an order to its end on one of the workers that `may_run` names. Raises `Cancelled` and `NoWorkers`."""
        while True:
            addresses = self._waited_for(may_run, cancel)
            future = self.client.submit(
                run_order,
                order,
                key=f"probe-{order.key}-{uuid.uuid4().hex[:8]}",
                pure=False,
                workers=addresses,
                allow_other_workers=False,
                resources={GPU: 1} if order.combination.device is Device.CUDA else None,
            )
            try:
                reply = self._awaited(future, addresses, order, cancel)
            finally:
                self._give_back(future)
            if reply is not None and not reply.stopped:
                return reply

    def _waited_for(self, may_run: Callable[[], dict[str, Member]], cancel: threading.Event | None) -> list[str]:
        """Workers to choose from; with none at the moment, wait for one to come (back)."""
        until = time.monotonic() + _WAIT_FOR_WORKERS_S
        while True:
            if addresses := list(may_run()):
                return addresses
            if time.monotonic() > until:
                raise NoWorkers(
                    f"no worker is left at {self.address} that is like this machine",
                    hint=f"start workers again; {_GO_ON}",
                )
            if (cancel or threading.Event()).wait(_LOOK_S):
                raise Cancelled

    def _awaited(
        self, future: Future[Reply], addresses: list[str], order: Order, cancel: threading.Event | None
    ) -> Reply | None:
        """The reply, None if all workers that could give it have gone."""
        from distributed import KilledWorker

        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        look_at = time.monotonic() + _LOOK_S
        while not done.wait(_TICK_S):
            if cancel is not None and cancel.is_set():
                raise Cancelled
            if time.monotonic() > look_at:
                look_at = time.monotonic() + _LOOK_S
                if set(addresses).isdisjoint(self._addresses()):
                    return None
        try:
            return future.result(timeout=_FETCH_S)
        except KilledWorker as error:
            raise NoWorkers(
                f"workers lost one after another while they ran {order.repro.name}: {error.allowed_failures + 1}",
                hint=f"their logs, or the job queue's, say why; {_GO_ON}",
            ) from error
        except Exception as error:
            if future.cancelled() or self.client.status != "running":
                raise self._lost() from error
            raise HarnessFault(f"a worker failed with {type(error).__name__}: {error}") from error

    def _give_back(self, future: Future[Reply]) -> None:
        """Tell the scheduler that nobody waits for this; one that is gone can't be told."""
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
        return NoWorkers(f"the scheduler at {self.address} is gone", hint=f"start it again; {_GO_ON}")

    def _introduced(self, addresses: list[str], kind: Kind) -> dict[str, Any]:
        """What workers say of themselves, an exception for those that can't."""
        if not addresses:
            return {}
        answers: dict[str, Any] = self.client.run(
            introduce, kind.python, kind.cache_tag, workers=addresses, on_error="return"
        )
        return answers

    def _check_scheduler(self) -> None:
        """Orders pass through the scheduler, which has to know what they are."""
        try:
            digest: str = self.client.run_on_scheduler(code_digest)
        except Exception as error:
            self.close()
            raise self._other_scheduler() from error
        if digest != code_digest():
            self.close()
            raise self._other_scheduler()

    def _other_scheduler(self) -> NoWorkers:
        return NoWorkers(
            f"the scheduler at {self.address} runs without this very harness",
            hint="install the same release with its extra [dask] there, and start it from that environment",
        )


def _knock(address: str) -> str:
    """The whole address of a scheduler; fails soon where none is, of which Dask's client would not be sure for long.

    Raises `OSError` if nobody listens, `ValueError` if it is something else that does.
    """
    from distributed.comm.addressing import parse_address, parse_host_port, unparse_host_port

    scheme, place = parse_address(address)
    if scheme not in ("tcp", "tls"):
        raise ValueError(scheme)
    host, port = parse_host_port(place, _PORT)
    socket.create_connection((host, port), timeout=_CONNECT_S).close()
    whole = f"{scheme}://{unparse_host_port(host, port)}"
    try:
        identity = asyncio.run(asyncio.wait_for(_identity(whole), _CONNECT_S))
    except Exception as error:
        raise ValueError("not a server of Dask") from error
    if identity["type"] != "Scheduler":
        raise ValueError(identity["type"])
    return whole


async def _identity(address: str) -> dict[str, Any]:
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
        identity: dict[str, Any] = await server.identity()
        return identity


def _not_introduced(error: Any) -> str:
    if "No module named" in str(error):
        return "the harness is not installed there (pip install 'regression-harness[dask]')"
    return f"it can't be asked: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
