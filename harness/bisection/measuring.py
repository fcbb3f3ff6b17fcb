"""A number without a bound: both ends are measured until they differ clearly, and the bound between them is derived.

Which direction is worse, and where the bound is, follows from the two ends. From then on the question is one with a
signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.bisection.answer import Answer, Effort, Failure, QuestionRecord, Status
from harness.errors import UserMistake
from harness.events import Progress, Reporter
from harness.model import Change, Outcome, Signature, Verdict
from harness.model.boundary import Boundary, Candidate
from harness.model.signature import FINITE
from harness.model.text import counted
from harness.model.verdict import FAILED_DIFFERENTLY
from harness.probing.lanes import Engine
from harness.probing.line import Line, RunLog
from harness.search import Trial, TwoEnds, bound_between

if TYPE_CHECKING:
    from harness.model import Observation
    from harness.model.boundary import Effect
    from harness.probing import Judge, Probe
    from harness.probing.lanes import Lanes
    from harness.probing.probe import Probing
    from harness.question.question import Question

FEW_RUNS = 5  # of an older candidate that is only tried as the good end
_SMALL = 0.01  # a smaller change is nothing to look for, unless its end was named


@frozen
class MeasuredEnds:
    """Both ends of a line as they were measured, by the positions `good` and `bad`.

    `signature` has the bound between them, None if they do not differ; `sentence` says what the numbers are.
    `is_noisy`: the number of a run can be on the other side of the bound. `is_large`: they differ by so much that it is
    worth a search where no good end was named.
    """

    record: RunLog
    good: int
    bad: int
    signature: Signature | None
    sentence: str
    is_noisy: bool = False
    is_large: bool = False

    @property
    def has_numbers(self) -> bool:
        """Whether both ends have the number."""
        runs = {trial.position for trial in self.record.observations if self.record.number(trial) is not None}
        return runs.issuperset((self.good, self.bad))

    @property
    def made(self) -> frozenset[str]:
        """The keys of the runs that were made now."""
        return frozenset(step.observation for step in self.record.steps if not step.cached)

    def of_side(self, position: int) -> Observation:
        """A run of an end whose number is on its own side of the bound."""
        judge = evolve(self.record.judge, signature=self.signature)
        wanted = Verdict.GOOD if position == self.good else Verdict.BAD
        trials = sorted(trial for trial in self.record.observations if trial.position == position)
        runs = [self.record.observations[trial] for trial in trials]
        return next((run for run in runs if judge(run).verdict is wanted), runs[0])

    def bounded(self, question: Question) -> Question:
        """Return a question with the bound; its runs are repeated from the start if the number is noisy."""
        policy = evolve(question.policy, flaky=question.policy.flaky or self.is_noisy)
        return evolve(question, repro=evolve(question.repro, signature=self.signature), policy=policy)


@frozen
class Measuring:
    """Measures the ends of a line, the bad one first; `judge` has the signature without a bound."""

    line: Line
    judge: Judge
    prober: Probing
    lanes: Lanes
    reporter: Reporter

    def ends(self) -> MeasuredEnds:
        """Measure both ends; without a good one, older candidates until one differs by at least a percent.

        Raises `UserMistake` if a run that ended well has no such number, `Interrupted`, `NoNetwork` and `NoSpace`.
        """
        line, last = self.line, len(self.line.names) - 1
        record = RunLog(line, self.judge, reporter=self.reporter)
        bad = line.bad if line.bad is not None else 0 if line.find_fix else last
        if line.good is not None or line.find_fix:
            return self.between(record, line.good if line.good is not None else last, bad)
        measured: MeasuredEnds | None = None
        for candidate in _steps_back(bad):
            ends = self.between(record, candidate, bad, *([FEW_RUNS] if candidate else []))
            if ends.is_large or record.number(Trial(bad)) is None:
                return ends
            measured = ends if ends.has_numbers else measured  # one that can't be run says nothing
        if measured is None:
            raise UserMistake(
                f"no release of {line.subject} before {line.names[bad]} has the number {self._name}",
                hint="--good names one with which it was right",
            )
        return measured

    @property
    def _name(self) -> str:
        return self.judge.signature.measure if self.judge.signature is not None else ""

    def between(self, record: RunLog, good: int, bad: int, *most: int) -> MeasuredEnds:
        """Measure two candidates, each up to `most` times, until their numbers differ clearly. Raises as `ends`."""
        line, ends = self.line, TwoEnds(good, bad, record.number, *most)
        for trial, run in list(record.observations.items()):
            if trial.position in (good, bad):
                ends.tell(trial, record.judge(run).verdict)

        def probe_of(trial: Trial) -> Probe:
            return evolve(line.probe(trial), fresh=True)

        def progress() -> Progress:
            return Progress(left=ends.remaining())

        Engine(self.prober, self.lanes, probe_of, line.label_of, record.take, self.reporter, progress).drive(ends)
        for at in (bad, good):
            first = record.observations.get(Trial(at))
            if first is not None and first.outcome is Outcome.COMPLETED and not ends.numbers(at):
                self._refuse(record, first, line.label_of(Trial(at)))
        return self._measured(record, ends, good, bad)

    def _refuse(self, record: RunLog, run: Observation, label: str) -> None:
        """Raise `UserMistake` for a run that ended well and has no such number."""
        reason = record.judge(run).reason
        if record.signature is not None and record.signature.is_pattern:
            what = f"nothing that {label} prints matches {record.signature.metric}"
            raise UserMistake(what, hint="the first group has to be a number, such as 'loss: ([0-9.]+)'")
        hint = "a script writes numbers as JSON to the file named by HARNESS_METRICS; or give a regular expression"
        raise UserMistake(f"{label}: {reason}", hint=f"{hint} with a group that matches the number in the output")

    def _measured(self, record: RunLog, ends: TwoEnds, good: int, bad: int) -> MeasuredEnds:
        """Derive the bound from the numbers of both ends."""
        signature, name = self.judge.signature, self._name
        numbers = tuple(map(ends.numbers, (good, bad)))
        if signature is None or not all(numbers):
            return MeasuredEnds(record, good, bad, None, self._without_number(record, good, bad, numbers))
        of_ends = f"{name} is " + " and ".join(
            f"{_in_words(values)} ({self.line.label_of(Trial(at))}, {counted(len(values), 'run')})"
            for at, values in zip((good, bad), numbers, strict=True)
        )
        odd = [sum(not math.isfinite(value) for value in values) for values in numbers]
        effect = ends.effect
        if any(odd):
            if odd[0]:
                return MeasuredEnds(record, good, bad, None, f"{of_ends}, so that the good end is no better")
            above, below = FINITE
            bounded = evolve(signature, above=above, below=below)
            words = f"{of_ends}: a run without a finite number is bad"
            is_noisy = odd[1] < len(numbers[1])
            return MeasuredEnds(record, good, bad, bounded, words, is_noisy=is_noisy, is_large=True)
        if effect is None or not effect.is_clear:
            runs = sum(map(len, numbers))
            is_same = effect is not None and effect.difference == effect.spread == 0
            why = f"the same in all {runs} runs" if is_same else f"a difference within the noise of {runs} runs"
            return MeasuredEnds(record, good, bad, None, f"{of_ends}, {why}")
        bound, is_higher = bound_between(effect), effect.bad > effect.good
        bounded = evolve(signature, above=bound) if is_higher else evolve(signature, below=bound)
        direction = "higher" if is_higher else "lower"
        words = f"{of_ends}: {direction} is worse, and {bounded.bounds} is bad"
        is_noisy, is_large = any(_may_cross(values, bound) for values in numbers), _is_large(effect)
        return MeasuredEnds(record, good, bad, bounded, words, is_noisy=is_noisy, is_large=is_large)

    def _without_number(self, record: RunLog, good: int, bad: int, numbers: tuple[tuple[float, ...], ...]) -> str:
        """Say which end has no number, and why."""
        at = bad if not numbers[1] else good
        step = next((step for step in record.steps if step.release == self.line.names[at]), None)
        why = step.reason.removeprefix(FAILED_DIFFERENTLY) if step is not None else "it did not run"
        return f"{self.line.label_of(Trial(at))} has no {self._name}, because it fails: {why}"


def _steps_back(bad: int) -> Iterator[int]:
    """The positions 1, 2, 4, ... before one, down to the oldest."""
    step = 1
    while step < bad:
        yield bad - step
        step *= 2
    if bad > 0:
        yield 0


def _is_large(effect: Effect) -> bool:
    """Whether a difference is worth a search where no end was named."""
    return abs(effect.difference) >= _SMALL * max(abs(effect.good), abs(effect.bad))


def _may_cross(values: Sequence[float], bound: float) -> bool:
    """Whether a further run may be on the other side of the bound: it is no farther away than the values vary."""
    return min(abs(value - bound) for value in values) <= max(values) - min(values)


def _in_words(values: tuple[float, ...]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        odd = next(value for value in values if not math.isfinite(value))
        return f"{odd:g}" if not finite else f"{odd:g} in {len(values) - len(finite)} of {len(values)} runs"
    return f"{median(values):.4g}"


def no_difference(measured: MeasuredEnds, question: Question, candidates: tuple[Candidate, ...] = ()) -> Answer:
    """Return the answer that the numbers of the two ends do not differ, or that an end has none."""
    record, line = measured.record, measured.record.line
    status = Status.NOT_A_REGRESSION if measured.has_numbers else Status.INCONCLUSIVE
    boundary = Boundary(
        Change(line.subject, None, None, line.unit, line.find_fix),
        candidates=candidates or tuple(map(Candidate, line.names)),
        steps=tuple(record.steps),
    )
    failure = Failure((), record.signature, status, boundary=boundary, note=measured.sentence)
    advice = ""
    if status is Status.INCONCLUSIVE:
        command = evolve(question, policy=evolve(question.policy, metric="")).command
        advice = f"To find what makes it fail, leave out --metric: {command}"
    return Answer(QuestionRecord.of(question), status, failures=(failure,), advice=advice, effort=Effort(record.ran))
