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
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from attrs import define, evolve, field, frozen

from harness.errors import HarnessError, HarnessFault, Interrupted
from harness.events import Dropped, Judged, Preparing, Progress, Reporter, Started
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from harness.model import Judgement, Observation, Verdict
    from harness.probing import Prepared, Probe
    from harness.probing.probe import Prepares
    from harness.search import Search


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


C = TypeVar("C")

_AHEAD = 2
_BUILDERS = 2
_TICK_S = 0.25
_QUICK_S = 0.05
_FIRST_S = 3.0  # how long requested candidates are prepared alone; a longer wait is one for downloads
PATIENCE_S = 1.0  # less than preparing a candidate takes that is not needed after all
_NEARLY_DONE = (0.85, 1.5)  # from and to which share of the usual duration a useless run may go on


@define
class _Work(Generic[C]):
    """One candidate in progress: `since` when it is prepared, and when its run has `begun`."""

    candidate: C
    since: float
    cancel: threading.Event = field(factory=threading.Event)
    preparing: Future[Prepared] | None = None
    running: Future[Observation] | None = None
    begun: float = 0.0

    @property
    def prepared(self) -> Prepared | None:
        """The prepared probe, None while it is being prepared."""
        done = self.preparing is not None and self.preparing.done() and not self.preparing.cancelled()
        if not done or self.preparing is None or self.preparing.exception() is not None:
            return None
        return self.preparing.result()

    @property
    def is_answered(self) -> bool:
        """Whether it has an observation without a run of its own."""
        return self.prepared is not None and self.prepared.observation is not None

    def answer(self, prepared: Prepared) -> None:
        """Take the observation of another candidate with the same key."""
        self.preparing = Future()
        self.preparing.set_result(prepared)

    @property
    def future(self) -> Future[Prepared] | Future[Observation] | None:
        return self.running or self.preparing


@frozen
class Engine(Generic[C]):
    """Drives searches over candidates of one kind.

    `judge` judges and records an observation; its last argument says whether it was cached. `as_told` translates a
    verdict for the search. `progress` returns how far the search is. `is_proof` marks its runs as proofs. `patience_s`
    is how long a free lane waits for a run that is about to end, whose verdict may change what is needed. `clock`
    returns the time in seconds.
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
    patience_s: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def drive(self, search: Search[C], *, width: int | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """Run candidates, `width` at a time (None: all lanes), until the search is done or `until` returns true.

        Raises `Interrupted` on Ctrl-C, and any error that a probe raised. The store keeps every observation made until
        then.
        """
        at_once = width or self.lanes.count
        works: dict[C, _Work[C]] = {}
        ended: dict[str, Observation] = {}
        took: list[float] = []
        desk = Lanes(_BUILDERS)
        try:
            while not search.done and not until():
                asked = search.ask(at_once + _waiting(works))
                if not asked:
                    raise HarnessFault("the search is not done but asks for no candidate")
                self._start_new(works, asked, desk, Priority.ASKED)
                # Start candidates that are prepared quickly before calling `foresee`, which may take as long.
                wait([w.preparing for c in asked if (w := works[c]).preparing and not w.running], timeout=_QUICK_S)
                self._answer_twins(works, ended)
                if not any(works[candidate].is_answered for candidate in asked):  # may make others useless
                    self._fill_lanes(works, asked, at_once)
                foreseen = search.foresee(_AHEAD)
                self._drop(works, {*asked, *foreseen, *self._nearly_done(works, took)})
                if not self._is_preparing(works, asked):
                    self._start_new(works, foreseen, desk, Priority.AHEAD)
                futures: list[Future[Any]] = [
                    work.future for work in works.values() if work.future is not None and not _is_idle(work)
                ]
                if futures:
                    wait(futures, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                    self._wait_for_others(works)
                took += self._collect(search, works, asked, ended)
        except KeyboardInterrupt as error:
            raise Interrupted(
                "stopped; finished runs are kept", hint="run the same command again to continue"
            ) from error
        finally:
            for work in works.values():
                work.cancel.set()
            desk.close()
            for work in works.values():
                if work.running is not None:
                    work.running.cancel()
                    wait([work.running])

    def _start_new(self, works: dict[C, _Work[C]], candidates: tuple[C, ...], desk: Lanes, priority: Priority) -> None:
        for candidate in candidates:
            if candidate not in works:
                work = works[candidate] = _Work(candidate, self.clock())
                prepare = partial(self.prober.prepare, self.probe_of(candidate), cancel=work.cancel)
                work.preparing = desk.submit_as(priority, prepare)
                if priority is Priority.ASKED and not self.is_proof:
                    self.reporter.report(Preparing(self.label_of(candidate)))

    def _is_preparing(self, works: dict[C, _Work[C]], asked: tuple[C, ...]) -> bool:
        """Whether a requested candidate is being prepared, which others would slow down."""
        until = self.clock() - _FIRST_S
        return any(
            work.running is None and work.prepared is None and work.since > until
            for candidate in asked
            if (work := works.get(candidate)) is not None
        )

    def _answer_twins(self, works: dict[C, _Work[C]], ended: dict[str, Observation]) -> None:
        """Answer each prepared candidate if another one with the same key has finished."""
        for work in works.values():
            prepared = work.prepared
            if work.running is None and prepared is not None and prepared.observation is None:
                observation = ended.get(prepared.key)
                if observation is not None:
                    work.answer(evolve(prepared, observation=observation, cached=True))

    def _fill_lanes(self, works: dict[C, _Work[C]], asked: tuple[C, ...], at_once: int) -> None:
        keys = _running_keys(works)
        for candidate in asked:
            work = works[candidate]
            prepared = work.prepared
            if len(keys) >= at_once or work.running is not None or prepared is None:
                continue
            if prepared.observation is None and prepared.key not in keys:
                self.reporter.report(Started(self.label_of(candidate)))
                work.begun = self.clock()
                run = partial(self.prober.execute, prepared, cancel=work.cancel)
                work.running = self.lanes.submit_as(Priority.PROOF if self.is_proof else Priority.ASKED, run)
                keys.add(prepared.key)

    def _collect(
        self, search: Search[C], works: dict[C, _Work[C]], asked: tuple[C, ...], ended: dict[str, Observation]
    ) -> list[float]:
        """Tell the search what has ended; returns the durations of the runs among it, in seconds."""
        took: list[float] = []
        for candidate, work in list(works.items()):
            if work.running is not None:
                if work.running.done():
                    del works[candidate]
                    took.append(self.clock() - work.begun)
                    observation = work.running.result()
                    if work.prepared is not None:
                        ended[work.prepared.key] = observation
                    self._tell(search, candidate, observation, cached=False)
            elif work.preparing is not None and work.preparing.done():
                self._collect_prepared(search, works, candidate, wanted=candidate in asked)
        return took

    def _collect_prepared(self, search: Search[C], works: dict[C, _Work[C]], candidate: C, *, wanted: bool) -> None:
        work = works[candidate]
        if work.preparing is None:
            return
        try:
            prepared = work.preparing.result()
        except (HarnessError, Cancelled):
            del works[candidate]
            if wanted:
                raise
            return
        if prepared.observation is not None and (wanted or not prepared.observation.outcome.ran):
            del works[candidate]
            self._tell(search, candidate, prepared.observation, cached=prepared.cached)

    def _tell(self, search: Search[C], candidate: C, observation: Observation, *, cached: bool) -> None:
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

    def _wait_for_others(self, works: dict[C, _Work[C]]) -> None:
        """If a run has ended, wait for those that began at about the same time, since they should end soon."""
        elapsed = {work.running: self.clock() - work.begun for work in works.values() if work.running is not None}
        usual = max((seconds for future, seconds in elapsed.items() if future.done()), default=None)
        if usual is not None:
            soon = [future for future, seconds in elapsed.items() if abs(usual - seconds) <= self.patience_s]
            wait(soon, timeout=self.patience_s)

    def _nearly_done(self, works: dict[C, _Work[C]], took: list[float]) -> Iterator[C]:
        """The candidates whose runs are about to end, if they take as long as the earlier ones (`took`, in seconds)."""
        earliest, latest = (share * sum(took) / max(len(took), 1) for share in _NEARLY_DONE)
        for candidate, work in works.items():
            if took and work.running is not None and earliest <= self.clock() - work.begun <= latest:
                yield candidate

    def _drop(self, works: dict[C, _Work[C]], keep: set[C]) -> None:
        """Stop all other candidates."""
        for candidate in [c for c in works if c not in keep]:
            work = works.pop(candidate)
            work.cancel.set()
            self.reporter.report(Dropped(self.label_of(candidate)))
            if work.future is not None:
                work.future.cancel()


def _running_keys(works: dict[C, _Work[C]]) -> set[str]:
    return {work.prepared.key for work in works.values() if work.running is not None and work.prepared is not None}


def _waiting(works: dict[C, _Work[C]]) -> int:
    """The number of candidates that wait for a running one with the same key and so need no lane."""
    keys = _running_keys(works)
    return sum(
        work.running is None and work.prepared is not None and work.prepared.key in keys for work in works.values()
    )


def _is_idle(work: _Work[C]) -> bool:
    """Whether a candidate was prepared ahead and waits until the search needs it."""
    return work.running is None and work.preparing is not None and work.preparing.done()
