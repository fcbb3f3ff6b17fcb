"""The main loop: it asks a search for candidates, runs them on lanes, and tells the search their verdicts.

While a lane runs, the candidates that the search expects next are resolved and installed, so the next run starts at
once. A candidate that can't be resolved is skipped without a run. If several candidates have the same key (the same
repro in the same lock), one of them runs and answers for the others. A run that the search no longer needs is stopped,
unless it is nearly done: its verdict may save a repetition later.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, evolve, field, frozen

from harness.errors import HarnessError, HarnessFault, Interrupted
from harness.events import Asked, Dropped, Judged, Progress, Reporter, Started
from harness.run.process import Cancelled
from harness.scheduling.scheduler import Lanes, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.model import Judgement, Observation, Verdict
    from harness.probing import Prepared, Probe
    from harness.probing.probe import Prepares
    from harness.search import Search

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


def _unchanged(verdict: Verdict) -> Verdict:
    return verdict


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
    as_told: Callable[[Verdict], Verdict] = _unchanged
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
                    self.reporter.report(Asked(self.label_of(candidate)))

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
