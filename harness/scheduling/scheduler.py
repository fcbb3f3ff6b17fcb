"""Lanes run calls concurrently by priority, each lane one at a time; a spare lane runs what will be needed later.

`Lanes.submit` is the one way to start work: the main loop submits preparations and runs, and a `SpareLane` submits the
probes that a search leaves time for. Waiting calls start by priority, then in the order of their submission.

`Engine` is the main loop: it asks a search for candidates, runs them on lanes, and tells the search their verdicts.
While a lane runs, the candidates that the search expects next are resolved and installed, so the next run starts at
once. A candidate that can't be resolved is skipped without a run. If several candidates have the same key (the same
repro in the same lock), one of them runs and answers for the others. A run that the search no longer needs is stopped,
unless it is nearly done: its verdict may save a repetition later.
"""

from __future__ import annotations

import contextlib
import enum
import heapq
import itertools
import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, field, frozen

from harness.errors import HarnessError, HarnessFault, Interrupted
from harness.events import Dropped, Judged, Preparing, Progress, Reporter, Started
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from harness.model import Judgement, Observation, Verdict
    from harness.probing import Prepared, Probe
    from harness.probing.probe import Prepares
    from harness.search import Search


T = TypeVar("T")


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

    def submit(self, call: Callable[[], T], priority: Priority = Priority.ASKED) -> Future[T]:
        """Start a call as soon as a lane is free and no call with a higher priority waits for one.

        Raises `RuntimeError` after `close`.
        """
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
    _holds: int = field(default=0, init=False)

    def begin(self) -> None:
        """Start the next run, unless one is in progress or has failed; each run begins the one after it."""
        with self._lock:
            is_free = self._last is None or (self._last.done() and self._last.exception() is None)
            if not (is_free and self.left) or self._holds or self._cancel.is_set() or self.lanes.count < 2:
                return
            self._last = self.lanes.submit(self._run_next, Priority.REPETITION)
        self._last.add_done_callback(lambda _: self.begin())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Start no run while the context lasts: the search needs all lanes. The one in progress may go on."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.begin()

    def wait(self) -> None:
        """Wait for the run in progress, if there is one."""
        if self._last is not None:
            wait([self._last])

    def finish(self) -> None:
        """Wait for the run in progress, and start no other one."""
        self.left.clear()
        self.wait()

    def close(self) -> None:
        """Stop the run in progress. Raises what went wrong in the last one, except a `HarnessError`."""
        self._cancel.set()
        if self._last is not None:
            self._last.result()

    def _run_next(self) -> None:
        if self._holds or self._cancel.is_set() or not self.left:  # since it was submitted
            return
        probe = self.left.popleft()
        with contextlib.suppress(Cancelled, HarnessError):  # a search that needs it runs it again
            prepared = self.prober.prepare(probe, cancel=self._cancel)
            if prepared.observation is None:
                self.ran.add(self.prober.execute(prepared, cancel=self._cancel).key)


def held_for(spare: SpareLane | None, runs: int) -> AbstractContextManager[None]:
    """Hold a spare lane if a search needs all lanes for its next `runs`; see `SpareLane.held`."""
    return spare.held() if spare is not None and runs >= spare.lanes.count else contextlib.nullcontext()


C = TypeVar("C")

_AHEAD = 2
_BUILDERS = 2
_TICK_S = 0.25
_QUICK_S = 0.05
_NEARLY_DONE = (0.85, 1.5)  # from and to which share of the duration of the run that just ended


@define
class _Work(Generic[C]):
    """One candidate in progress: first it is prepared, then it may run.

    Its run has `begun` at a time; until `kept_until` it goes on although the search does not need it.
    """

    preparing: Future[Prepared]
    cancel: threading.Event
    priority: Priority
    running: Future[Observation] | None = None
    begun: float = 0.0
    kept_until: float = 0.0

    @property
    def prepared(self) -> Prepared | None:
        """The prepared probe, None while it is being prepared."""
        is_ready = self.preparing.done() and self.preparing.exception() is None
        return self.preparing.result() if is_ready else None

    @property
    def has_failed_ahead(self) -> bool:
        """Whether it could not be prepared when nobody had asked for it."""
        return self.priority is Priority.AHEAD and self.preparing.done() and self.preparing.exception() is not None

    @property
    def future(self) -> Future[Prepared] | Future[Observation]:
        """What to wait for."""
        return self.running or self.preparing

    @property
    def is_idle(self) -> bool:
        """Whether it waits until the search needs it, or a lane is free."""
        return self.running is None and self.preparing.done()


@frozen
class Engine(Generic[C]):
    """Drives searches over candidates of one kind.

    `judge` judges and records an observation; its last argument says whether it was cached. `as_told` translates a
    verdict for the search. `progress` returns how far the search is. `is_proof` marks its runs as proofs. `fresh` has
    the keys of observations that were made beside the search, so that they don't count as cached. `clock` returns the
    time in seconds.
    """

    prober: Prepares
    lanes: Lanes
    probe_of: Callable[[C], Probe]
    label_of: Callable[[C], str]
    judge: Callable[[C, Observation, bool], Judgement]
    reporter: Reporter
    progress: Callable[[], Progress]
    as_told: Callable[[Verdict], Verdict] = lambda verdict: verdict
    is_proof: bool = False
    fresh: Collection[str] = ()
    clock: Callable[[], float] = time.monotonic

    def drive(self, search: Search[C], *, width: int | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """Run candidates, `width` at a time (None: all lanes), until the search is done or `until` returns true.

        Raises `Interrupted` on Ctrl-C, and any error that a probe raised. The store keeps every observation made until
        then.
        """
        at_once = width or self.lanes.count
        works: dict[C, _Work[C]] = {}
        ended: dict[str, Observation] = {}
        desk = Lanes(_BUILDERS)
        try:
            while not search.done and not until():
                asked = search.ask(at_once + _twins(works))
                if not asked:
                    raise HarnessFault("the search is not done but asks for no candidate")
                self._prepare(works, asked, desk, Priority.ASKED)
                # Start candidates that are prepared quickly before calling `foresee`, which may take as long.
                wait([works[candidate].preparing for candidate in asked if not works[candidate].running], _QUICK_S)
                if self._collect(search, works, asked, ended):
                    continue  # a verdict may make others useless
                self._fill_lanes(works, asked, ended, at_once)
                foreseen = search.foresee(_AHEAD)
                self._drop(works, {*asked, *foreseen})
                if all(works[candidate].preparing.done() for candidate in asked):  # others would slow it down
                    self._prepare(works, foreseen, desk, Priority.AHEAD)
                busy: list[Future[Any]] = [work.future for work in works.values() if not work.is_idle]
                if busy:
                    wait(busy, _TICK_S, FIRST_COMPLETED)
        except KeyboardInterrupt as error:
            raise Interrupted(
                "stopped; finished runs are kept", hint="run the same command again to continue"
            ) from error
        finally:
            for work in works.values():
                work.cancel.set()
            desk.close()
            for work in works.values():
                if work.running is not None and not work.running.cancel():
                    wait([work.running])

    def _prepare(self, works: dict[C, _Work[C]], candidates: tuple[C, ...], desk: Lanes, priority: Priority) -> None:
        """Begin to prepare those candidates that are not in progress; what failed ahead is tried again if asked for."""
        for candidate in candidates:
            if candidate not in works or (priority is Priority.ASKED and works[candidate].has_failed_ahead):
                cancel = threading.Event()
                prepare = partial(self.prober.prepare, self.probe_of(candidate), cancel=cancel)
                works[candidate] = _Work(desk.submit(prepare, priority), cancel, priority)
                if priority is Priority.ASKED and not self.is_proof:
                    self.reporter.report(Preparing(self.label_of(candidate)))

    def _fill_lanes(
        self, works: dict[C, _Work[C]], asked: tuple[C, ...], ended: dict[str, Observation], at_once: int
    ) -> None:
        keys = _running_keys(works)
        for candidate in asked:
            work = works[candidate]
            prepared = work.prepared
            if len(keys) >= at_once or work.running is not None or prepared is None:
                continue
            if prepared.observation is None and prepared.key not in {*keys, *ended}:
                self.reporter.report(Started(self.label_of(candidate)))
                work.begun = self.clock()
                run = partial(self.prober.execute, prepared, cancel=work.cancel)
                work.running = self.lanes.submit(run, Priority.PROOF if self.is_proof else Priority.ASKED)
                keys.add(prepared.key)

    def _collect(
        self, search: Search[C], works: dict[C, _Work[C]], asked: tuple[C, ...], ended: dict[str, Observation]
    ) -> bool:
        """Tell the search what has ended; returns whether that was anything."""
        before = len(works)
        for candidate, work in list(works.items()):
            if work.running is not None and work.running.done():
                del works[candidate]
                observation = work.running.result()
                ended[work.preparing.result().key] = observation
                self._keep_nearly_done(works, self.clock() - work.begun)
                self._tell(search, candidate, observation, cached=False)
        for candidate, work in list(works.items()):
            if not work.is_idle:
                continue
            try:
                prepared = work.preparing.result()
            except (HarnessError, Cancelled):
                if candidate in asked:
                    raise
                continue
            known = prepared.observation or ended.get(prepared.key)
            if known is not None and (candidate in asked or not known.outcome.ran):
                del works[candidate]
                self._tell(search, candidate, known, cached=prepared.cached or prepared.observation is None)
        return len(works) < before

    def _tell(self, search: Search[C], candidate: C, observation: Observation, *, cached: bool) -> None:
        cached = cached and observation.key not in self.fresh
        judgement = self.judge(candidate, observation, cached)
        search.tell(candidate, self.as_told(judgement.verdict))
        self.reporter.report(
            Judged(
                self.label_of(candidate),
                judgement,
                observation,
                cached=cached,
                progress=self.progress(),
                is_proof=self.is_proof,
            )
        )

    def _keep_nearly_done(self, works: dict[C, _Work[C]], took: float) -> None:
        """Let the runs go on that are about to end if they take as long as one that just ended, `took` in seconds."""
        earliest, latest = (share * took for share in _NEARLY_DONE)
        for work in works.values():
            if work.running is not None and self.clock() - work.begun >= earliest:
                work.kept_until = work.begun + latest

    def _drop(self, works: dict[C, _Work[C]], keep: set[C]) -> None:
        """Stop all other candidates, except runs that are nearly done."""
        for candidate in [c for c, work in works.items() if c not in keep and work.kept_until < self.clock()]:
            work = works.pop(candidate)
            work.cancel.set()
            self.reporter.report(Dropped(self.label_of(candidate)))
            work.future.cancel()


def _running_keys(works: dict[C, _Work[C]]) -> set[str]:
    return {work.prepared.key for work in works.values() if work.running is not None and work.prepared is not None}


def _twins(works: dict[C, _Work[C]]) -> int:
    """The number of candidates that wait for a running one with the same key and so need no lane."""
    keys = _running_keys(works)
    return sum(
        work.running is None and work.prepared is not None and work.prepared.key in keys for work in works.values()
    )
