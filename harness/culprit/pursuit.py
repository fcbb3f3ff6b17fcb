"""Searches over probes, up to a limit of runs and time; each skip may add ties."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.edits import Unit
from harness.events import Progress
from harness.model import Judgement, Observation, Verdict
from harness.model.culprit import Proof
from harness.model.text import listed
from harness.probing import Probe
from harness.probing.lanes import Engine
from harness.search import Narrowing

if TYPE_CHECKING:
    from harness.culprit.trials import Trials

Candidate = frozenset[Unit]


class OutOfTime(Exception):
    """The time ran out while the harness itself computed."""


def check_time(until: float | None) -> None:
    """Raise `OutOfTime` at this time on the monotonic clock, or later; None is no limit."""
    if until is not None and time.monotonic() >= until:
        raise OutOfTime


_PER_RUN = 3  # sets judged per allowed run: many of them are known to fail without a run


@frozen
class Reduced:
    """The smallest set of units that makes the difference alone, as far as the search got: `is_minimal` if to its end.

    `unproven` are the units without which it could not be judged. `shown` is the run of the set, None if no set smaller
    than all units was sufficient. `runs` counts the runs, `ran_now` those that the store did not answer,
    `unresolved` the skips. `told` has all verdicts and runs.
    """

    units: Candidate
    is_minimal: bool
    unproven: Candidate
    runs: int
    ran_now: int
    unresolved: int
    shown: Observation | None
    told: Mapping[Candidate, tuple[Verdict, Observation]] = field(factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what the search could not show."""
        told = []
        if not self.is_minimal:
            told.append(f"stopped after {self.runs} runs; a smaller set may be enough")
        if self.unproven and len(self.units) > 1:
            told.append(f"could not be run without: {listed(sorted(self.unproven))}")
        return tuple(told)


def shown(trials: Trials, sentence: str, reduced: Reduced, expected: Verdict, probe: Callable[[], Probe]) -> Proof:
    """The proof by the run of the smallest set that a search found; a skip if no smaller set was sufficient."""
    if reduced.shown is None:
        return Proof(sentence, expected, Verdict.SKIP, "no smaller part of it was enough")
    return trials.proof_by(reduced.shown, sentence, probe(), expected)


@frozen
class Pursuit:
    """Finds which units make the verdict `flipped` when applied alone; all of them together do, the empty set does not.

    `weights` say how likely each unit is the cause. `closed` completes a set with everything that it needs. `learn` is
    called with each skip and returns whether `closed` has learned from it.

    `parts` are tried alone before sets are, `at_once` at a time (None: on all lanes), each completed by `complete`; of
    sets, `sets_at_once`. `together`: units may be enough only together, so that a skip of one says nothing about it. If
    not `leaves_out`, the search ends without leaving out each unit of the result. With `are_alone`, sets are tried only
    in a part that was enough. `most` limits the runs of sets. `until` is the time on the monotonic clock at which the
    search stops, also while it works out what to try next. `judge` defaults to the judge of the trials.
    """

    trials: Trials
    flipped: Verdict
    weights: Mapping[Unit, float]
    probe_of: Callable[[Candidate], Probe]
    label_of: Callable[[Candidate], str]
    closed: Callable[[Candidate], Candidate] = frozenset
    learn: Callable[[Candidate, Observation], bool] = lambda _moved, _observation: False
    are_alone: bool = False
    most: float = 40
    until: float | None = None
    judge: Callable[[Observation], Judgement] | None = None
    parts: Sequence[Candidate] = ()
    complete: Callable[[Candidate], Candidate] = frozenset
    at_once: int | None = None
    sets_at_once: int | None = 1  # each verdict decides the next set
    together: bool = False
    leaves_out: bool = True

    def run(self) -> Reduced:
        """Run the search to its end or to a limit."""
        search = self._search()
        told: dict[Candidate, tuple[Verdict, Observation]] = {}
        ran = ran_now = sets = judged_sets = 0

        def judged(candidate: Candidate, observation: Observation, cached: bool) -> Judgement:
            nonlocal ran, ran_now, sets, judged_sets
            judgement = (self.judge or self.trials.judge)(observation)
            if not search.are_parts_left:
                sets += observation.outcome.ran
                judged_sets += 1
            told[candidate] = (judgement.verdict, observation)
            ran += observation.outcome.ran
            ran_now += not cached and observation.outcome.ran
            if judgement.verdict is Verdict.SKIP and self.learn(candidate, observation):
                search.refresh()
            return judgement

        def is_enough() -> bool:
            if self.until is not None and time.monotonic() >= self.until:
                return True
            if search.are_parts_left:
                return False
            is_none_enough = all(verdict is not self.flipped for verdict, _ in told.values())
            return sets >= self.most or judged_sets >= _PER_RUN * self.most or (self.are_alone and is_none_enough)

        engine = Engine(
            self.trials.prober,
            self.trials.lanes,
            self.probe_of,
            self.label_of,
            judged,
            self.trials.reporter,
            lambda: Progress(candidates=len(self.weights), tried=ran),
            self._as_told,
        )
        try:
            engine.drive(search, width=self.at_once, until=lambda: is_enough() or not search.are_parts_left)
            engine.drive(search, width=self.sets_at_once, until=is_enough)
            result = search.result
        except OutOfTime:
            result = search.reached
        self.trials.tally.ran_now += ran_now
        return Reduced(
            units=result.minimal,
            is_minimal=result.is_minimal,
            unproven=result.unproven,
            runs=ran,
            ran_now=ran_now,
            unresolved=result.unresolved,
            shown=told[result.minimal][1] if result.minimal in told else None,
            told=told,
        )

    def next_sets(self, count: int) -> tuple[Candidate, ...]:
        """Up to `count` sets: the one to try next, then those that follow if the difference stays.

        Raises `OutOfTime`.
        """
        return self._search().ask(count)

    def _search(self) -> Narrowing[Unit]:
        return Narrowing(
            tuple(self.weights),
            weights=self.weights,
            closed=self._in_time(self.closed),
            parts=self.parts,
            complete=self._in_time(self.complete),
            together=self.together,
            leaves_out=self.leaves_out,
        )

    def _in_time(self, completed: Callable[[Candidate], Candidate]) -> Callable[[Candidate], Candidate]:
        """The same function, which raises `OutOfTime` at the end of the time: it reads and mixes whole files."""

        def checked(units: Candidate) -> Candidate:
            check_time(self.until)
            return completed(units)

        return checked

    def _as_told(self, verdict: Verdict) -> Verdict:
        """The verdict for the search, which calls a set BAD if it has the verdict `flipped`."""
        if verdict is Verdict.SKIP:
            return verdict
        return Verdict.BAD if verdict is self.flipped else Verdict.GOOD
