"""Runs the probes of a question between two sets of packages, and trusts a pass as far as the bug is known to be flaky.

If a bug shows only in some runs, a single pass says little. A prober that repeats counts a run as passed only once it
has passed often enough, and as failed at the first failure, so a search over sets needs no noise model of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.bisection.failures import FailureJudge
from harness.culprit.proofs import Tally
from harness.errors import HarnessError
from harness.events import Judged, Preparing, Reporter, Started, run_label
from harness.model import Observation, Outcome, Repro, Signature, Verdict
from harness.probing import Judge, Prepared, Probe, next_attempt
from harness.probing.probe import Around, Probing, run_ahead
from harness.question.request import Policy
from harness.run.commands import only
from harness.run.process import Cancelled
from harness.search import PATIENT, passes_needed, readings_of

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.probing.lanes import Lanes, Task


def only_tests(repro: Repro, tests: tuple[str, ...]) -> Repro:
    """Return the repro with its command restricted to these tests; unchanged without tests."""
    return repro.running(only(repro.argv, tests)) if tests else repro


@frozen
class Repeating(Around):
    """A prober whose runs count as passed only after `passes` of them passed; `judge` says what passed."""

    prober: Probing
    judge: Judge
    passes: int

    def prepare(self, probe: Probe) -> Prepared:
        """Prepare the first repetition that has no observation, or return what the known ones decide."""
        probe = evolve(probe, fresh=True)  # forks have the same seed, so they are no repetitions
        prepared = first = self.prober.prepare(probe)
        for _ in range(1, self.passes):
            if prepared.observation is None or not self._passed(prepared.observation):
                return prepared
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe)
        is_decided = prepared.observation is not None and self._passed(prepared.observation)
        return first if is_decided else prepared

    def execute(self, prepared: Prepared) -> Observation:
        """Run a probe until it fails, or has passed often enough; returns the failed run, or else the last one."""
        while True:
            run = self.prober.execute(prepared)
            if not self._passed(run) or prepared.probe.attempt + 1 >= self.passes:
                return run
            prepared = self.prober.prepare(next_attempt(prepared.probe))
            if prepared.observation is not None:
                return prepared.observation

    def _passed(self, observation: Observation) -> bool:
        return self.judge(observation).verdict is Verdict.GOOD


_ATTEMPTS = 48  # of one probe, at most; the next repetition of it begins after them
_LOST = 4  # of them may have no number


@frozen
class Steady(Around):
    """A prober whose runs are repeated until their numbers show the side of the bound; `judge` has that bound.

    The observation of a probe is a run on that side. If the runs do not decide, it declines.
    """

    prober: Probing
    judge: Judge

    def prepare(self, probe: Probe) -> Prepared:
        """Prepare the first repetition that has no observation, or return what the known ones decide."""
        return self._next(probe, [])

    def execute(self, prepared: Prepared) -> Observation:
        """Run a probe as often as it takes; returns a run on the side of the bound that the runs show."""
        runs: list[Observation] = []
        prepared = self._next(self._first(prepared.probe), runs)
        while prepared.observation is None:
            runs.append(self.prober.execute(prepared))
            prepared = self._next(self._first(prepared.probe), runs)
        return prepared.observation

    def _first(self, probe: Probe) -> Probe:
        return evolve(probe, attempt=probe.attempt // _ATTEMPTS)

    def _next(self, probe: Probe, runs: list[Observation]) -> Prepared:
        """Prepare the repetition after `runs`, to which those that are known are added."""
        begin = probe.attempt * _ATTEMPTS
        while True:
            prepared = self.prober.prepare(evolve(probe, fresh=True, attempt=begin + len(runs)))
            decided = self._decided(runs) if runs else None
            if decided is not None:
                return evolve(prepared, observation=decided, cached=True)
            if prepared.observation is None:
                return prepared
            runs.append(prepared.observation)

    def _decided(self, runs: Sequence[Observation]) -> Observation | None:
        """What the runs of a probe decide, None if more are needed."""
        readings = [reading for run in runs if (reading := self.judge.reading(run)) is not None]
        if self.judge.reading(runs[0]) is None:
            return runs[0]
        if readings_of(readings, PATIENT).is_open and len(runs) - len(readings) <= _LOST:
            return None
        judgement, run = self.judge.together(runs, *PATIENT)
        return (
            run
            if judgement.verdict is not Verdict.SKIP
            else evolve(run, outcome=Outcome.DECLINED, detail=judgement.reason)
        )


@frozen
class Observer:
    """Runs the probes of a question between two sets of packages.

    `policy` says how sure searches over a line have to be. `failures` and `runs` are those of the bad end, once it
    is known that the bug does not show in every run (0 and 0: it does, as far as is known). `tally` counts the runs of
    all levels, `typed` are the words of the question for printed commands. A run of the good end that began before
    `since` (ISO 8601, "": none) is made again. `made` has the keys of runs that were made beside others.
    """

    prober: Probing
    lanes: Lanes
    index: Index
    reporter: Reporter
    policy: Policy = Policy()
    failures: int = 0
    runs: int = 0
    tally: Tally = field(factory=Tally)
    typed: tuple[str, ...] = ()
    since: str = ""
    made: set[str] = field(factory=set)

    @property
    def is_flaky(self) -> bool:
        """Whether one run does not tell good from bad."""
        return self.policy.flaky

    @property
    def passes(self) -> int:
        """How often a run has to pass before the bug counts as gone; 1 if one run tells good from bad."""
        return passes_needed(self.failures, max(self.runs, self.failures)) if self.is_flaky else 1

    def flaky(self, failures: int, runs: int) -> Observer:
        """Return the observer for a bug that showed in `failures` of `runs` runs of the bad end."""
        return evolve(self, policy=evolve(self.policy, flaky=True), failures=failures, runs=runs)

    def repeating(self, judge: Judge) -> Probing:
        """Return the prober for a search over sets."""
        if not self.is_flaky:
            return self.prober
        if judge.signature is not None and judge.signature.metric is not None:
            return Steady(self.prober, judge)
        return Repeating(self.prober, judge, self.passes)

    @contextlib.contextmanager
    def beside(self, *probes: Callable[[], Probe | None]) -> Iterator[list[Task[str]]]:
        """Run probes that are observed next on the other lanes, and wait for them at the end of the context.

        An error stops them.
        """

        def run(make: Callable[[], Probe | None]) -> str:
            with contextlib.suppress(Cancelled, HarnessError):  # whoever needs it makes it again
                if (probe := make()) is not None:
                    return run_ahead(self.prober, evolve(probe, fresh=True))
            return ""

        tasks = [self.lanes.submit(partial(run, make)) for make in probes[: self.lanes.count - 1]]
        try:
            yield tasks
            self.made.update(task.result() for task in tasks if not task.cancelled())
        finally:
            for task in tasks:
                task.stop()

    def observe(self, label: str, probe: Probe, judge: Judge | None = None) -> Observation:
        """Run one probe, or take its observation from the store; `judge` determines the reported verdict.

        Without `judge` the run is that of an end, and it runs once. Without a signature, any failure of it is bad.
        """
        self.reporter.report(Preparing(label))
        prober = self.repeating(judge) if judge is not None else self.prober
        prepared = prober.prepare(evolve(probe, fresh=True))
        if (observation := prepared.observation) is None:
            self.reporter.report(Started(label))
            observation = prober.execute(prepared)
        is_known = prepared.cached and observation.key not in self.made
        self.made.discard(observation.key)
        self.tally.ran_now += not is_known and observation.outcome.ran
        judgement = (judge or self._judge_of_ends(probe.repro.signature))(observation)
        self.reporter.report(Judged(label, judgement, observation, cached=is_known))
        return observation

    def observe_again(
        self, label: str, probe: Probe, attempts: Iterable[int], until: Callable[[Observation], bool]
    ) -> Sequence[Observation]:
        """Run these attempts of a probe until one of the runs is as wanted; returns these runs."""
        runs: list[Observation] = []
        for number in attempts:
            runs.append(self.observe(run_label(label, number), evolve(probe, attempt=number)))
            if until(runs[-1]):
                break
        return runs

    def _judge_of_ends(self, signature: Signature | None) -> Judge:
        """Return the judge of an end's run: any failure is bad if there is no signature."""
        differing = Verdict.SKIP if signature is not None else Verdict.BAD
        return FailureJudge(signature, self.prober.store, differing=differing)
