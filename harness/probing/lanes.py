"""The scheduler of a question: starts calls by priority, as soon as what they need is free.

`Lanes.submit` is the one way to start work: the main loop submits preparations and runs, and a search below a release
the repetitions that free lanes leave time for.

`Engine` is the main loop: it asks a search for candidates, runs them on lanes, and tells the search their verdicts.
While a lane runs, the candidates that the search expects next are resolved, and installed if a CPU is free, so that the
next run starts at once. A candidate that can't be resolved is skipped without a run. If several candidates have the
same key (the same repro in the same lock), one of them runs and answers for the others. A run that the search no longer
needs is stopped, unless it is nearly done: its verdict may save a repetition later.
"""

from __future__ import annotations

import enum
import threading
import time
from bisect import insort
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, evolve, field, frozen

from harness.errors import HarnessError, HarnessFault, Interrupted
from harness.events import Dropped, Judged, Preparing, Progress, Reporter, Started
from harness.probing.probe import is_warm
from harness.run.process import Cancelled, cancelled_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from harness.model import Judgement, Observation, Verdict
    from harness.probing import Prepared, Probe
    from harness.probing.probe import Probing
    from harness.search import Search


T = TypeVar("T")


class Priority(enum.IntEnum):
    """Why a call is made; of those that wait, the lowest starts first."""

    ASKED = 0  # the search needs it now
    PROOF = 1
    AHEAD = 2  # the search may need it


class Needs(enum.Enum):
    """What a call occupies while it runs."""

    LANE = enum.auto()  # one run
    BUILDER = enum.auto()  # no lane: a preparation, of which a few go on beside the runs


class Task(Future[T]):
    """A call that was submitted. `cancel` prevents that it starts, and `stop` ends it as well."""

    def __init__(self, call: Callable[[], T], priority: Priority, needs: Needs) -> None:
        super().__init__()
        self.call, self.priority, self.needs = call, priority, needs
        self._unwanted = threading.Event()

    def stop(self) -> None:
        """Cancel the call; one that has started raises `Cancelled` where it next waits."""
        self._unwanted.set()
        self.cancel()

    def run(self) -> None:
        """Make the call."""
        try:
            with cancelled_by(self._unwanted):
                result = self.call()
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            self.set_exception(error)
        else:
            self.set_result(result)


def started(call: Callable[[], T]) -> Task[T]:
    """Make a call on a thread of its own, beside all lanes."""
    task = Task(call, Priority.ASKED, Needs.BUILDER)
    task.set_running_or_notify_cancel()
    threading.Thread(target=task.run, name="beside").start()
    return task


_BUILDERS = 2


@define
class Lanes:
    """Makes calls, each on a thread of its own, up to `count` of them at a time beside those that only prepare.

    A lane is one run, here or on a worker. With `builds_ahead` environments are built before it is known that they are
    needed; without, when the runs need all CPUs, only what has to be downloaded is prepared.
    """

    count: int = 1
    builds_ahead: bool = True
    _waiting: list[Task[Any]] = field(factory=list, init=False)
    _running: set[Task[Any]] = field(factory=set, init=False)
    _is_closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def submit(self, call: Callable[[], T], priority: Priority = Priority.ASKED, needs: Needs = Needs.LANE) -> Task[T]:
        """Make a call as soon as what it needs is free and no call with a higher priority waits for a lane, too.

        Raises `RuntimeError` after `close`.
        """
        task = Task(call, priority, needs)
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the lanes are closed")
            insort(self._waiting, task, key=lambda waiting: waiting.priority)
        task.add_done_callback(lambda _: self._ended(task))
        self._start()
        return task

    @property
    def free(self) -> int:
        """How many lanes no call occupies or waits for."""
        with self._lock:
            wanted = [task.needs for task in (*self._running, *self._waiting) if task.needs is not Needs.BUILDER]
        return max(0, self.count - len(wanted))

    def close(self) -> None:
        """Cancel the calls that wait, wait for the others, and accept no more."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._waiting)
        for task in waiting:
            task.cancel()
        wait(self._running.copy())

    def _start(self) -> None:
        """Start the calls whose turn it is."""
        with self._lock:
            if self._is_closed:
                return
            busy = [task.needs for task in self._running]
            builders, lanes = _BUILDERS - busy.count(Needs.BUILDER), self.count - busy.count(Needs.LANE)
            for task in list(self._waiting):
                if task.needs is Needs.BUILDER:
                    is_turn = builders > 0
                    builders -= 1
                else:
                    is_turn = lanes > 0
                    lanes -= 1
                if is_turn:
                    self._waiting.remove(task)
                    if task.set_running_or_notify_cancel():
                        self._running.add(task)
                        threading.Thread(target=task.run, name="lane").start()

    def _ended(self, task: Task[Any]) -> None:
        """Free what a call needed that has ended or was cancelled."""
        with self._lock:
            self._running.discard(task)
            if task in self._waiting:
                self._waiting.remove(task)
                task.set_running_or_notify_cancel()
        self._start()


def _ended(prepared: Prepared, ended: Mapping[str, Observation]) -> Observation | None:
    """The run of another candidate that answers for a prepared one; a fork answers for none that has to be fresh."""
    run = ended.get(prepared.key)
    return None if run is not None and is_warm(run) and prepared.probe.fresh else run


C = TypeVar("C")

_AHEAD = 2
_TICK_S = 0.25
_QUICK_S = 0.05
_NEARLY_DONE = (0.85, 1.5)  # from and to which share of the duration of the run that just ended


@define
class _Work(Generic[C]):
    """One candidate in progress: first it is prepared, then it may run.

    Its run has `begun` at a time; until `kept_until` it goes on although the search does not need it. If it `is_ahead`,
    its environment may not be built before the search needs it.
    """

    preparing: Task[Prepared]
    running: Task[Observation] | None = None
    begun: float = 0.0
    kept_until: float = 0.0
    is_ahead: bool = False

    @property
    def prepared(self) -> Prepared | None:
        """The prepared probe, None while it is being prepared."""
        is_ready = self.preparing.done() and self.preparing.exception() is None
        return self.preparing.result() if is_ready else None

    @property
    def is_partial(self) -> bool:
        """Whether it was prepared ahead, but without its environment."""
        prepared = self.prepared
        return self.is_ahead and prepared is not None and prepared.observation is None and prepared.probe.ahead

    @property
    def task(self) -> Task[Prepared] | Task[Observation]:
        """What it waits for."""
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

    prober: Probing
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
        try:
            while not search.done and not until():
                candidates = search.ask(at_once)
                if not candidates:
                    raise HarnessFault("the search is not done but asks for no candidate")
                self._prepare(works, candidates, Priority.ASKED)
                # Start candidates that are prepared quickly before calling `foresee`, which may take as long.
                wait([works[candidate].preparing for candidate in candidates if not works[candidate].running], _QUICK_S)
                if self._collect(search, works, candidates, ended):
                    continue  # a verdict may make others useless
                self._fill_lanes(works, candidates, ended, at_once)
                foreseen = search.foresee(_AHEAD)
                self._drop(works, {*candidates, *foreseen})
                if all(works[candidate].preparing.done() for candidate in candidates):  # others would slow it down
                    self._prepare(works, foreseen, Priority.AHEAD)
                busy: list[Task[Any]] = [work.task for work in works.values() if not work.is_idle]
                if busy:
                    wait(busy, _TICK_S, FIRST_COMPLETED)
        except KeyboardInterrupt as error:
            raise Interrupted(
                "stopped; finished runs are kept", hint="run the same command again to continue"
            ) from error
        finally:
            for work in works.values():
                work.task.stop()
            ending: list[Task[Any]] = [work.task for work in works.values()]
            wait(ending)

    def _prepare(self, works: dict[C, _Work[C]], candidates: tuple[C, ...], priority: Priority) -> None:
        """Begin to prepare those candidates that are not in progress, and the environments that are needed now."""
        is_ahead = priority is Priority.AHEAD
        for candidate in candidates:
            if candidate not in works or (works[candidate].is_partial and not is_ahead):
                probe = self.probe_of(candidate)
                if saves_cpu := is_ahead and not self.lanes.builds_ahead:
                    probe = evolve(probe, ahead=True)
                prepare = partial(self.prober.prepare, probe)
                works[candidate] = _Work(self.lanes.submit(prepare, priority, Needs.BUILDER), is_ahead=saves_cpu)
                if priority is Priority.ASKED and not self.is_proof:
                    self.reporter.report(Preparing(self.label_of(candidate)))

    def _fill_lanes(
        self, works: dict[C, _Work[C]], candidates: tuple[C, ...], ended: dict[str, Observation], at_once: int
    ) -> None:
        keys = {work.prepared.key for work in works.values() if work.running is not None and work.prepared is not None}
        for candidate in candidates:
            work = works[candidate]
            prepared = work.prepared
            if len(keys) >= at_once or work.running is not None or prepared is None or work.is_partial:
                continue
            if prepared.observation is None and prepared.key not in keys and _ended(prepared, ended) is None:
                self.reporter.report(Started(self.label_of(candidate)))
                work.begun = self.clock()
                run = partial(self.prober.execute, prepared)
                priority = Priority.PROOF if self.is_proof else Priority.ASKED
                work.running = self.lanes.submit(run, priority)
                keys.add(prepared.key)

    def _collect(
        self, search: Search[C], works: dict[C, _Work[C]], candidates: tuple[C, ...], ended: dict[str, Observation]
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
                if candidate in candidates:
                    raise
                continue
            known = prepared.observation or _ended(prepared, ended)
            if known is not None and (candidate in candidates or not known.outcome.ran):
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
            work.task.stop()
            self.reporter.report(Dropped(self.label_of(candidate)))
