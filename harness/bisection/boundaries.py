"""Answers a question about a line: searches it, goes below the change, and turns the result into a boundary.

It is the same for releases, commits and Pythons; each of them is a `LineQuestion`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.bisection.answer import Answer, Effort, Failure, QuestionRecord, Status
from harness.bisection.measuring import MeasuredEnds, Measuring, no_difference
from harness.bisection.observing import Steady
from harness.bisection.wording import moved_ends, why_unsure
from harness.culprit.descent import fault_in_words, find_culprit
from harness.culprit.proofs import Trials, count_proofs
from harness.culprit.sides import Side, Sides
from harness.errors import UserMistake
from harness.events import LevelBegan, Note, SearchBegan
from harness.model import Change, Release, Verdict
from harness.model.boundary import Boundary, Candidate, Certainty
from harness.model.culprit import Culprit, Finding, Level
from harness.model.verdict import verdicts_around
from harness.probing.lanes import Lanes, Task
from harness.probing.line import Line, ProbedLine, SearchedLine
from harness.probing.probe import run_ahead
from harness.search import LineStatus

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.events import Reporter
    from harness.model import Observation
    from harness.probing import Judge
    from harness.probing.probe import Probing
    from harness.question.question import Question
    from harness.search import Trial
    from harness.session import Session


_CODE = re.compile(r"(?<![\w.+-])\d+(?![\w.])")
_PROOFS = 2  # on each side: of the package, and of its lines


@frozen(kw_only=True)
class LineQuestion:
    """A question about one line; a subclass says what is special about its candidates.

    `depth` is the level to reach below the change. `announced` are a headline and its details, reported before the
    first run; None if they were reported before. `known` are runs that were made before, those of `measured` ends among
    them. `candidates` describe those of the line; without them they are its names. `reasons` say why candidates of the
    range are not on the line.
    """

    line: Line
    question: Question
    prober: Probing
    judge: Judge
    depth: Level = Level.RELEASE
    announced: tuple[str, tuple[str, ...]] | None = None
    known: Mapping[Trial, Observation] = field(factory=dict)
    candidates: tuple[Candidate, ...] = ()
    reasons: Mapping[str, str] = field(factory=dict)
    measured: MeasuredEnds | None = None

    def bounded(self, measured: MeasuredEnds) -> LineQuestion:
        """Return the question with the bound between its measured ends."""
        return evolve(
            self,
            line=evolve(self.line, good=measured.good, bad=measured.bad),
            question=measured.bounded(self.question),
            judge=evolve(self.judge, signature=measured.signature),
            announced=None,
            known={**self.known, **measured.record.observations},
            measured=measured,
        )

    def below(self, trials: Trials, sides: Sides, _: SearchedLine) -> tuple[Finding, ...]:
        """Find what is below the two sides of the change."""
        return find_culprit(trials, sides, self.depth)

    def left_out(self, _names: Collection[str]) -> Mapping[str, str]:
        """Return the reasons that the answer gives; `names` are the candidates that ran."""
        return self.reasons

    def refined(self, result: LineFindings) -> LineFindings:
        """Return the result with what only the kind of line can find, such as the commit inside a merge."""
        return result

    def advice(self, _answer: Answer) -> str:
        """Return what to do next, "" if nothing is known to help."""
        return ""


@frozen
class LineFindings:
    """A finished search over a line, its boundary, and what was found below it, which took `ran_now` runs."""

    searched: SearchedLine
    boundary: Boundary
    findings: tuple[Finding, ...] = ()
    ran_now: int = 0


def search_line(
    question: LineQuestion, lanes: Lanes, index: Index, reporter: Reporter, *, repeating: Probing | None = None
) -> LineFindings:
    """Search a line, then what is below its change, whose proofs are further runs of the two sides.

    The repetitions that will be missing then run where what is below leaves a lane free. No culprit is returned if
    single runs, with which it was found, turn out not to tell good from bad. `repeating` is the prober for what is
    below if a single run is known not to be enough. Raises `Interrupted`, `NoNetwork` and `NoSpace`, and `UserMistake`
    if every run failed by the same mistake in the command.
    """
    ran_now, beside, fault = 0, list[Task[str]](), ""
    findings = tuple[Finding, ...]()
    proofs, below = (0, 0), question.question
    line = ProbedLine(question.line, question.judge, question.prober, lanes, reporter, below.policy.noise)
    goes_below = question.depth is not Level.RELEASE
    searched = line.search(
        question.known,
        sure=not goes_below,
        announced=question.announced,
        captured_from="the bad end",
        fresh=question.measured.made if question.measured is not None else (),
    )
    mistakes = {run.mistake for run in searched.record.observations.values()}
    if len(mistakes) == 1 and (mistake := mistakes.pop()):
        raise UserMistake(f"this failure is not a bug: {mistake}, in every run")
    sides, judge = sides_of(searched), searched.record.judge
    if not goes_below or sides is None or len(sides.before.lock.diff(sides.after.lock)) > 1:
        searched = line.confirmed(searched)  # else the proof of the package is a fresh run of each
        sides = sides_of(searched)
    is_steady = repeating is not None or not searched.search.is_noisy
    with contextlib.ExitStack() as stack:
        if goes_below and sides is not None and judge.signature is not None and is_steady:
            _report_change(searched, reporter)
            missing = iter(line.repetitions(searched, (_PROOFS, _PROOFS)))

            def repeat_beside(leave: int) -> None:
                if lanes.free > leave and (trial := next(missing, None)) is not None:
                    beside.append(lanes.submit(partial(run_ahead, line.prober, searched.record.probe_of(trial))))
                    stack.callback(beside[-1].stop)

            if repeating is not None:  # one run of it is enough
                below = evolve(below, policy=evolve(below.policy, flaky=False, confirm=0))
            trials = Trials(
                below,
                repeating or line.prober,
                lanes,
                index,
                judge,
                reporter,
                known=tuple(searched.record.observations.values()),
                repeat_beside=repeat_beside,
            )
            if repeating is None:
                trials.tally.used.update(run.key for run in searched.record.observations.values())
            try:
                findings = question.below(trials, sides, searched)
            except Exception as error:  # noqa: BLE001 - the release stands, whatever went wrong below it
                fault = fault_in_words(line.prober.store, error)
            ran_now = trials.tally.ran_now
            if repeating is None:
                proofs = count_proofs(searched, sides, findings, trials.tally.failed)
        searched = line.confirmed(searched, _runs_in(findings))
        searched = line.search_on(searched, proofs, lambda: {task.result() for task in beside if not task.cancel()})
    findings = () if searched.search.is_noisy and repeating is None else findings
    names = {step.release for step in searched.record.steps}
    boundary = evolve(boundary_of(searched, question.candidates, question.left_out(names)), fault=fault)
    return question.refined(LineFindings(searched, boundary, findings, ran_now))


def _runs_in(findings: Iterable[Finding]) -> list[Observation]:
    """The runs that prove findings."""
    proofs = [proof for finding in findings for proof in finding.proofs if proof.holds]
    return [proof.observation for proof in proofs if proof.observation is not None]


def _report_change(searched: SearchedLine, reporter: Reporter) -> None:
    """Say where the verdict changes before the levels below, which take longest, begin."""
    line, boundary = searched.line, searched.search.result.boundary
    if boundary:
        subject = line.unit if line.unit == "Python" else line.subject
        older, newer = (f"{subject} {line.names[position]}" for position in boundary)
        first, last = ("fixed in", "last bad") if line.find_fix else ("first bad", "last good")
        level = Level.COMMIT if line.unit == "commit" else Level.RELEASE
        reporter.report(LevelBegan(level, f"{first} {newer}, {last} {older}"))


def answer_line(session: Session, question: LineQuestion, lanes: Lanes) -> Answer:
    """Answer a question about one line. Raises as `search_line` does, and `UserMistake` if a number can't be read."""
    reporter, judge, repeating = session.reporter, question.judge, None
    if judge.signature is not None and judge.signature.is_unbounded:
        if question.announced is not None:
            reporter.report(SearchBegan(*question.announced))
        measured = Measuring(question.line, judge, question.prober, lanes, reporter).ends()
        if measured.signature is None:
            return no_difference(measured, question.question, question.candidates)
        reporter.report(Note(measured.sentence))
        question = question.bounded(measured)
        repeating = Steady(question.prober, question.judge) if measured.is_noisy else None
    result = search_line(question, lanes, session.index, reporter, repeating=repeating)
    answer = _answer(result, QuestionRecord.of(question.question))
    if question.measured is not None:
        answer = evolve(answer, notes=(question.measured.sentence, *answer.notes))
    return evolve(answer, advice=question.advice(answer))


def _answer(line: LineFindings, record: QuestionRecord) -> Answer:
    """Return the answer to a question whose only failure was searched on a line."""
    searched, boundary, status = line.searched, line.boundary, status_of(line.searched)
    result, signature = searched.search.result, searched.record.signature
    culprits = (Culprit(boundary, line.findings),) if status.is_change else ()
    note = why_unsure(boundary, result, signature) if status is Status.INCONCLUSIVE else ""
    failure = Failure((), signature, status, culprits, boundary=None if culprits else boundary, note=note)
    return Answer(
        record,
        status,
        failures=(failure,),
        constraints=tuple(culprit.constraint for culprit in culprits if culprit.constraint),
        verified_by=boundary.by_verdict.get(Verdict.GOOD) if culprits and boundary.constraint else None,
        notes=moved_ends(result, searched.line.names),
        effort=Effort(searched.record.ran, line.ran_now),
    )


_ABOUT_END = {
    LineStatus.NO_FAILURE: Verdict.BAD,
    LineStatus.NOT_A_REGRESSION: Verdict.GOOD,
    LineStatus.NOT_FIXED: Verdict.GOOD,
}


def status_of(searched: SearchedLine) -> Status:
    """Return how the search over a line ended.

    It is not sure if the levels below were to decide, and could not, or if the answer is about an end that could not be
    judged, such as "no failure" where the bad end fails in another way.
    """
    ended = searched.search.result.status
    is_unsure = ended in (LineStatus.OPEN, LineStatus.FLAKY) or _is_end_unjudged(searched)
    return Status.INCONCLUSIVE if is_unsure else Status(ended.value)


def _is_end_unjudged(searched: SearchedLine) -> bool:
    """Whether the answer would be about an end that a user named, or that ran, and that could not be judged."""
    line, result = searched.line, searched.search.result
    about = _ABOUT_END.get(result.status)
    moved = next((end for end in result.moved_ends if end.end is about), None)
    if moved is None:
        return False
    if (line.bad if about is Verdict.BAD else line.good) is not None:
        return True
    runs = (run for trial, run in searched.record.observations.items() if trial.position == moved.given)
    return result.status is not LineStatus.NOT_A_REGRESSION and any(run.outcome.ran for run in runs)


def candidates_of(releases: tuple[Release, ...]) -> tuple[Candidate, ...]:
    """Return releases as the candidates of a line."""
    return tuple(
        Candidate(str(release.version), release.uploaded.date().isoformat() if release.uploaded else "")
        for release in releases
    )


def boundary_of(
    searched: SearchedLine, candidates: tuple[Candidate, ...] = (), left_out: Mapping[str, str] | None = None
) -> Boundary:
    """Return what the search over a line found; without `candidates` they are the names of its line.

    `left_out` maps candidates of the range that were not tried to the reason.
    """
    line, record, result = searched.line, searched.record, searched.search.result

    older, newer = (line.names[position] for position in result.boundary) if result.boundary else (None, None)
    boundary = Boundary(
        Change(line.subject, older, newer, line.unit, line.find_fix),
        candidates=candidates or tuple(map(Candidate, line.names)),
        suspects=searched.suspects,
        sides=searched.sides,
        steps=tuple(record.steps),
        certainty=Certainty(
            result.confidence,
            result.good_side,
            result.bad_side,
            result.effect,
            searched.search.is_noisy,
            result.trusts_ends,
        ),
        left_out=dict(left_out or {}),
        message=_other_code(searched),
    )
    return boundary.with_untried() if status_of(searched).is_change else boundary


def _other_code(searched: SearchedLine) -> str:
    """Return the failure beside the change if it has other whole numbers than at the far end, such as a status code.

    "" if a signature was given, or if the runs of one of the two differ in their numbers, too.
    """
    record, result = searched.record, searched.search.result
    if result.boundary is None or record.signature is None or not record.signature.captured:
        return ""
    bad = {
        position: {step.reason for step in record.steps if step.release == name and step.verdict is Verdict.BAD}
        for position, name in enumerate(searched.line.names)
    }
    failed = [position for position, reasons in bad.items() if reasons]
    beside, far = (failed[-1], failed[0]) if searched.line.find_fix else (failed[0], failed[-1])
    if beside not in result.boundary or len(bad[beside]) != 1 or len(bad[far]) != 1:
        return ""
    (nearest,), (farthest,) = bad[beside], bad[far]
    if nearest == farthest or _CODE.sub("", nearest) != _CODE.sub("", farthest):
        return ""
    pairs = [pair for pair in zip(_CODE.findall(nearest), _CODE.findall(farthest), strict=True) if len(set(pair)) > 1]
    versions = [re.findall(r"\d+", searched.line.names[position]) for position in (beside, far)]
    follows = all(number in version for pair in pairs for number, version in zip(pair, versions, strict=True))
    return "" if follows else nearest  # numbers of the version are no news


def sides_of(searched: SearchedLine) -> Sides | None:
    """Return the two sides of the change, the older one first; None if there is no certain change."""
    locks = [side.lock for side in searched.sides if side.lock is not None]
    if not status_of(searched).is_change or len(locks) != 2:
        return None
    return Sides(*map(Side, locks, verdicts_around(is_fix=searched.line.find_fix), searched.sides))
