"""Lanes run calls concurrently by priority, each lane one at a time; a spare lane runs what will be needed later.

`Lanes.submit` is the one way to start work: the main loop submits preparations and runs, and a `SpareLane` submits the
probes that a search leaves time for. Waiting calls start by priority, then in the order of their submission.
"""

from __future__ import annotations

import contextlib
import enum
import heapq
import itertools
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from attrs import define, evolve, field, frozen

from harness.errors import HarnessError
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from harness.model import Observation
    from harness.probing import Prepared, Probe
    from harness.probing.probe import Prepares

P = ParamSpec("P")
T = TypeVar("T")

_LOOK_S = 0.1


class Priority(enum.IntEnum):
    """Why a call is made; of those that wait for a lane, the lowest starts first."""

    ASKED = 0  # the search needs it now
    PROOF = 1
    REPETITION = 2  # of a run that a finding rests on
    AHEAD = 3  # the search may need it


@define
class Lanes:
    """Runs up to `count` calls at a time. A lane is a thread that waits for one process tree, here or on a worker."""

    count: int = 1
    _pool: ThreadPoolExecutor = field(init=False)
    _waiting: list[tuple[Priority, int, Future[Any], Callable[[], Any]]] = field(factory=list, init=False)
    _numbers: Iterator[int] = field(factory=itertools.count, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="lane")

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call that a search needs now as soon as a lane is free. Raises `RuntimeError` after `close`."""
        return self.submit_as(Priority.ASKED, partial(function, *args, **kwargs))

    def submit_as(self, priority: Priority, call: Callable[[], T]) -> Future[T]:
        """Start a call as soon as a lane is free and no call with a higher priority waits for one."""
        future: Future[T] = Future()
        with self._lock:
            self._pool.submit(self._run_next)
            heapq.heappush(self._waiting, (priority, next(self._numbers), future, call))
        return future

    def close(self) -> None:
        """Wait for running calls, cancel those that wait, and accept no more."""
        with self._lock:
            self._pool.shutdown(wait=False, cancel_futures=True)
            waiting, self._waiting = self._waiting, []
        for _, _, future, _ in waiting:
            future.cancel()
        self._pool.shutdown()

    def _run_next(self) -> None:
        with self._lock:
            if not self._waiting:
                return
            _, _, future, call = heapq.heappop(self._waiting)
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            future.set_exception(error)


@define
class SpareLane:
    """Probes to run one after another beside a search, if there is more than one lane; the store keeps the results.

    Each run of the search that waits for a lane comes before the next probe. `ran` has the keys of the observations
    that were made, `left` are the probes that have not begun. Close it at the end, which stops the run in progress.
    """

    prober: Prepares
    lanes: Lanes
    left: deque[Probe]
    ran: set[str] = field(factory=set, init=False)
    _last: Future[None] | None = field(default=None, init=False)
    _cancel: threading.Event = field(factory=threading.Event, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _users: int = field(default=0, init=False)
    _holds: int = field(default=0, init=False)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Run probes while the context lasts; the last one may end later. Others run those left."""
        self._users += 1
        self._begin()
        try:
            yield
        finally:
            self._users -= 1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Start no run while the context lasts: the search needs all lanes. The one in progress may go on."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._begin()

    def wait(self, cancel: threading.Event | None = None) -> None:
        """Wait for the run in progress, if there is one. Raises `Cancelled`."""
        while self._last is not None and not wait([self._last], timeout=_LOOK_S).done:
            if cancel is not None and cancel.is_set():
                raise Cancelled

    def close(self) -> None:
        """Stop the run in progress. Raises what went wrong in the last one, except a `HarnessError`."""
        with self._lock:
            self.left.clear()
            self._cancel.set()
        if self._last is not None:
            self._last.result()

    def _begin(self) -> None:
        """Start the next run, unless one is in progress or has failed; each run begins the one after it."""
        with self._lock:
            is_free = self._last is None or (self._last.done() and self._last.exception() is None)
            if not (is_free and self.left and self._users) or self._holds or self.lanes.count < 2:
                return
            self._last = self.lanes.submit_as(Priority.REPETITION, partial(self._run, self.left.popleft()))
        self._last.add_done_callback(lambda _: self._begin())

    def _run(self, probe: Probe) -> None:
        if self._holds or not self._users:  # since it was submitted
            self.left.appendleft(probe)
            return
        with contextlib.suppress(Cancelled, HarnessError):  # a search that needs it runs it again
            prepared = self.prober.prepare(probe, cancel=self._cancel)
            if prepared.observation is None:
                self.ran.add(self.prober.execute(prepared, cancel=self._cancel).key)


def held_for(spare: SpareLane | None, runs: int) -> AbstractContextManager[None]:
    """Hold a spare lane if a search needs all lanes for its next `runs`; see `SpareLane.held`."""
    return spare.held() if spare is not None and runs >= spare.lanes.count else contextlib.nullcontext()


@frozen
class RanBeside:
    """A prober that takes results which were made in this session on a spare lane, and does not call them stored."""

    prober: Prepares
    spare: SpareLane | None

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Prepare a probe with the wrapped prober; if it runs on the spare lane, wait for its result."""
        prepared = self.prober.prepare(probe, cancel=cancel)
        if self.spare is None:
            return prepared
        if prepared.observation is None:
            self.spare.wait(cancel)
        if prepared.key not in self.spare.ran:
            return prepared
        return evolve(self.prober.prepare(probe, cancel=cancel), cached=False)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run it with the wrapped prober."""
        return self.prober.execute(prepared, cancel=cancel)
