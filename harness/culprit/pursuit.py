"""Pursuit: a narrowing over probes, to its end or within its runs and time; each skip may add a tie."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from attrs import field, frozen

from harness.culprit.counterfactual import Trials
from harness.culprit.reduction import Candidate, Reduced, Unit
from harness.events import Progress
from harness.model import Judgement, Observation, Verdict
from harness.probe import Probe
from harness.scheduling.loop import Engine
from harness.search import Narrowing

_PER_RUN = 3  # so many sets are looked at for each run that is allowed: many are known to fail without a run


@frozen
class Pursuit:
    """Finds which units make the verdict `flipped` when applied alone; all of them do, none does not.

    `weights` say how likely each unit is, `closed` completes a set by what it can't stand without, `roughly` at little
    cost, and `learn` is called with each skip: True if `closed` has learned from it. Where it has not, `doubt` may name
    the unit that failed by itself: sets that have it come last. `serving` units make no difference but for others, and
    `told` is what an earlier search of the same units has seen. `most` caps the runs, and
    `most_skips` those that could not be judged where they are the greater part; `until` is the moment, on the monotonic
    clock, at which it stops; `judge` is that of the trials unless it is given.
    """

    trials: Trials
    flipped: Verdict
    weights: Mapping[Unit, float]
    closed: Callable[[Candidate], Candidate]
    roughly: Callable[[Unit], Candidate]
    probe_of: Callable[[Candidate], Probe]
    label_of: Callable[[Candidate], str]
    learn: Callable[[Candidate, Observation], bool]
    most: int
    serving: Collection[Unit] = ()
    told: Mapping[Candidate, tuple[Verdict, Observation]] = field(factory=dict)
    doubt: Callable[[Candidate, Observation], Unit | None] = lambda _, __: None
    most_skips: int = 1000
    until: float | None = None
    judge: Callable[[Observation], Judgement] | None = None

    def run(self) -> Reduced:
        """Search."""
        search = self._search()
        told = dict(self.told)
        ran = ran_now = judged_well = skipped = 0

        def judged(candidate: Candidate, observation: Observation, cached: bool) -> Judgement:
            nonlocal ran, ran_now, judged_well, skipped
            judgement = (self.judge or self.trials.judge)(observation)
            told[candidate] = (judgement.verdict, observation)
            ran += observation.outcome.ran
            ran_now += not cached and observation.outcome.ran
            judged_well += judgement.verdict is not Verdict.SKIP
            skipped += judgement.verdict is Verdict.SKIP
            if judgement.verdict is Verdict.SKIP:
                if self.learn(candidate, observation):
                    search.refresh()
                elif (doubtful := self.doubt(candidate, observation)) is not None:
                    search.doubt(doubtful)
            return judgement

        def is_enough() -> bool:
            if skipped >= self.most_skips and skipped > judged_well:
                return True
            if len(told) - len(self.told) >= _PER_RUN * self.most:
                return True
            return ran >= self.most or (self.until is not None and time.monotonic() >= self.until)

        Engine(
            self.trials.searcher,
            self.trials.lanes,
            self.probe_of,
            self.label_of,
            judged,
            self.trials.reporter,
            lambda: Progress(candidates=len(self.weights), tried=ran),
            self._as_told,
        ).drive(search, width=1, until=is_enough)  # each answer is learned from before the next set is chosen
        self.trials.tally.ran_now += ran_now
        result = search.result
        return Reduced(
            units=result.minimal,
            is_minimal=search.done,
            unproven=result.unproven,
            runs=ran,
            ran_now=ran_now,
            unresolved=result.unresolved,
            shown=told[result.minimal][1] if result.minimal in told else None,
            gave_up=not search.done,
            told=told,
        )

    def next(self) -> Candidate | None:
        """The set that is tried first; None if there is none."""
        return next(iter(self._search().ask()), None)

    def _search(self) -> Narrowing[Unit]:
        search: Narrowing[Unit] = Narrowing(
            tuple(self.weights),
            weights=self.weights,
            closed=self.closed,
            roughly=self.roughly,
            serving=self.serving,
        )
        for candidate, (verdict, _) in self.told.items():
            search.tell(candidate, self._as_told(verdict))
        return search

    def _as_told(self, verdict: Verdict) -> Verdict:
        """A search calls "bad" what shows the difference."""
        if verdict is Verdict.SKIP:
            return verdict
        return Verdict.BAD if verdict is self.flipped else Verdict.GOOD
