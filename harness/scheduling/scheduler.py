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
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from attrs import define, evolve, field, frozen

from harness.errors import HarnessError
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
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
class _Run:
    """The run of a probe: the key of its observation, "" if it does not start, and its end."""

    probe: Probe
    cancel: threading.Event = field(factory=threading.Event)
    key: Future[str] = field(factory=Future)
    ended: Future[None] = field(factory=Future)
    begun: float = field(factory=time.monotonic)
    gives_way: bool = False

    def end(self) -> None:
        if not self.key.done():
            self.key.set_result("")
        self.ended.set_result(None)


@define
class SpareLane:
    """Probes to run one after another beside a search, if there is more than one lane; the store keeps the results.

    Each run of the search that waits for a lane comes before the next probe. If the search needs all lanes, a run that
    has done less than half of its usual `duration_s` is stopped and repeated later. `ran` has the keys of the
    observations that were made. Close it at the end: a run that nobody waited for by then is stopped.
    """

    prober: Prepares
    lanes: Lanes
    probes: Sequence[Probe]
    duration_s: float = 0.0
    ran: set[str] = field(factory=set, init=False)
    _left: deque[Probe] = field(init=False)
    _current: _Run | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _users: int = field(default=0, init=False)
    _holds: int = field(default=0, init=False)
    _is_closed: bool = field(default=False, init=False)
    _ended: Future[None] = field(init=False)  # done while no run is in progress or waits for a lane

    def __attrs_post_init__(self) -> None:
        self._left = deque(self.probes)
        self._ended = Future()
        self._ended.set_result(None)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Run probes while the context lasts; the last one may end later. Others run those left."""
        with self._lock:
            self._users += 1
            self._begin()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1

    @contextlib.contextmanager
    def held(self, *, stops: bool = True) -> Iterator[None]:
        """Start no run while the context lasts: the search needs all lanes. `stops`: stop one that has hardly begun."""
        with self._lock:
            self._holds += 1
            if stops and (run := self._current) and time.monotonic() - run.begun < self.duration_s / 2:
                run.gives_way = True
                run.cancel.set()
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                self._begin()

    def wait_for(self, key: str, cancel: threading.Event | None = None) -> None:
        """Wait for the run with the key of an observation, if it has begun. Raises `Cancelled`."""
        current = self._current
        if current is not None:
            _wait(current.key, cancel)
            if current.key.result() == key:
                _wait(current.ended, cancel)

    def close(self) -> None:
        """Stop the last run. Raises what went wrong in it, except a `HarnessError`."""
        with self._lock:
            self._is_closed = True
            if self._current is not None:
                self._current.cancel.set()
        self._ended.result()

    def _begin(self) -> None:
        """Start the next run, unless one is in progress; call it with the lock."""
        if self._users and self.lanes.count > 1 and self._ended.done() and not self._ended.exception():
            self._ended = Future()
            self._submit(self._ended)

    def _submit(self, ended: Future[None]) -> None:
        """Submit the next probe, which submits the one after it; `ended` is done after the last one."""

        def work() -> None:
            try:
                with self._lock:
                    is_wanted = self._left and self._users and not self._holds and not self._is_closed
                    if not is_wanted:
                        self._current = None
                        ended.set_result(None)
                        return
                    self._current = run = _Run(self._left.popleft())
                try:
                    with contextlib.suppress(Cancelled, HarnessError):  # a search that needs it runs it again
                        self._run(run)
                finally:
                    run.end()
                self._submit(ended)
            except BaseException as error:  # noqa: BLE001 - raised again by `close`
                ended.set_exception(error)

        self.lanes.submit_as(Priority.REPETITION, work)

    def _run(self, run: _Run) -> None:
        try:
            prepared = self.prober.prepare(run.probe, cancel=run.cancel)
            if prepared.observation is None:
                run.key.set_result(prepared.key)
                self.ran.add(self.prober.execute(prepared, cancel=run.cancel).key)
        except Cancelled:
            if run.gives_way:
                self._left.appendleft(run.probe)
            raise


def held_for(spare: SpareLane | None, runs: int, *, stops: bool = True) -> AbstractContextManager[None]:
    """Hold a spare lane if a search needs all lanes for its next `runs`; see `SpareLane.held`."""
    return spare.held(stops=stops) if spare is not None and runs >= spare.lanes.count else contextlib.nullcontext()


def _wait(future: Future[Any], cancel: threading.Event | None) -> None:
    while not wait([future], timeout=_LOOK_S).done:
        if cancel is not None and cancel.is_set():
            raise Cancelled


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
            self.spare.wait_for(prepared.key, cancel)
        if prepared.key not in self.spare.ran:
            return prepared
        return evolve(self.prober.prepare(probe, cancel=cancel), cached=False)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run it with the wrapped prober."""
        return self.prober.execute(prepared, cancel=cancel)
