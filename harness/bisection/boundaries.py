"""Answers a question about a line: searches it, goes below the change, and turns the result into a boundary.

It is the same for releases, commits and Pythons; each of them is a `LineQuestion`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.bisection.answer import Answer, Effort, Failure, QuestionRecord, Status
from harness.bisection.wording import moved_ends, why_unsure
from harness.culprit.descent import fault_in_words, find_culprit
from harness.culprit.proofs import Trials, count_proofs
from harness.culprit.sides import Side, Sides
from harness.errors import HarnessError, UserMistake
from harness.model import Change, Release, Verdict
from harness.model.boundary import Boundary, Candidate, Certainty
from harness.model.culprit import Culprit, Finding, Level
from harness.model.verdict import verdicts_around
from harness.probing.lanes import Lanes, Task
from harness.probing.line import Line, ProbedLine, Searched
from harness.run.process import Cancelled
from harness.search import LineStatus

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.model import Observation
    from harness.probing import Judge
    from harness.probing.probe import Probe, Probing
    from harness.question.question import Question, Scope
    from harness.search import Trial
    from harness.session import Session


_PROOFS = 2  # on each side: of the package, and of its lines
Find = Callable[[Trials, Sides, Searched], tuple[Finding, ...]]


def search_line(
    line: ProbedLine,
    scope: Scope,
    index: Index,
    announced: tuple[str, tuple[str, ...]] | None,
    find: Find | None,
    *,
    known: Mapping[Trial, Observation] | None = None,
    repeating: Probing | None = None,
) -> LineFindings:
    """Search a line, then what is below its change with `find`, whose proofs are further runs of the two sides.

    The repetitions that will be missing then run where what is below leaves a lane free. No culprit is returned if
    single runs, with which it was found, turn out not to tell good from bad. `known` are runs that were made before;
    `repeating` is the prober for what is below if a single run is known not to be enough. Raises `Interrupted`,
    `NoNetwork` and `NoSpace`, and `UserMistake` if every run failed by the same mistake in the command.
    """
    ran_now, beside, fault = 0, list[Task[str]](), ""
    findings = tuple[Finding, ...]()
    proofs = 0, 0
    searched = line.search(known, sure=find is None, announced=announced, captured_from="the bad end")
    mistakes = {run.mistake for run in searched.record.observations.values()}
    if len(mistakes) == 1 and (mistake := mistakes.pop()):
        raise UserMistake(f"this failure is not a bug: {mistake}, in every run")
    sides, judge = sides_of(searched), searched.record.judge
    is_steady = repeating is not None or not searched.search.is_noisy
    with contextlib.ExitStack() as stack:
        if find is not None and sides is not None and judge.signature is not None and is_steady:
            missing = iter(line.repetitions(searched, (_PROOFS, _PROOFS)))

            def repeat_beside(leave: int) -> None:
                if line.lanes.free > leave and (trial := next(missing, None)) is not None:
                    beside.append(line.lanes.submit(partial(_repeated, line.prober, line.line.probe(trial))))
                    stack.callback(beside[-1].stop)

            if repeating is not None:  # one run of it is enough
                scope = evolve(scope, policy=evolve(scope.policy, flaky=False, confirm=0))
            trials = Trials(
                scope,
                repeating or line.prober,
                line.lanes,
                index,
                judge,
                line.reporter,
                known=tuple(searched.record.observations.values()),
                repeat_beside=repeat_beside,
            )
            if repeating is None:
                trials.tally.seen.update(run.key for run in searched.record.observations.values())
            try:
                findings = find(trials, sides, searched)
            except Exception as error:  # noqa: BLE001 - the release stands, whatever went wrong below it
                fault = fault_in_words(line.prober.store, error)
            ran_now = trials.tally.ran_now
            if repeating is None:
                proofs = count_proofs(searched, sides, findings, trials.tally.failed)
        searched = line.search_on(searched, proofs, lambda: {task.result() for task in beside if not task.cancel()})
    findings = () if searched.search.is_noisy and repeating is None else findings
    return LineFindings(searched, findings, ran_now, fault)


def _repeated(prober: Probing, probe: Probe) -> str:
    """Run a repetition that may be missing, and return its key; "" if it was known, or could not be run."""
    with contextlib.suppress(Cancelled, HarnessError):  # a search that needs it runs it again
        prepared = prober.prepare(probe)
        if prepared.observation is None:
            return prober.execute(prepared).key
    return ""


@frozen
class LineFindings:
    """A finished search over a line, with what was found below its change, which took `ran_now` runs.

    `fault` says which internal error ended the search below the change, "" if none did.
    """

    searched: Searched
    findings: tuple[Finding, ...] = ()
    ran_now: int = 0
    fault: str = ""


@frozen(kw_only=True)
class LineQuestion:
    """A question about one line; a subclass says what is special about its candidates.

    `record` is the question as the answer keeps it, and `depth` the level to reach below the change. `announced` are a
    headline and its details, reported before the first run; None if they were reported before. `known` are runs that
    were made before. `candidates` describe those of the line; without them they are its names.
    """

    line: Line
    scope: Scope
    record: QuestionRecord
    prober: Probing
    judge: Judge
    depth: Level = Level.RELEASE
    announced: tuple[str, tuple[str, ...]] | None = None
    known: Mapping[Trial, Observation] = field(factory=dict)
    candidates: tuple[Candidate, ...] = ()

    def below(self, trials: Trials, sides: Sides, _: Searched) -> tuple[Finding, ...]:
        """Find what is below the two sides of the change."""
        return find_culprit(trials, sides, self.depth)

    def left_out(self, _names: Collection[str]) -> Mapping[str, str]:
        """Return why candidates of the range were not tried; `names` are those that were."""
        return {}

    def refined(self, result: LineFindings, boundary: Boundary) -> tuple[LineFindings, Boundary]:
        """Return the result with what only the kind of line can find, such as the commit inside a merge."""
        return result, boundary

    def advice(self, _answer: Answer) -> str:
        """Return what to do next, "" if nothing is known to help."""
        return ""


def answer_line(
    session: Session, question: Question, line_of: Callable[[Session, Question, Lanes], LineQuestion]
) -> Answer:
    """Answer a question about the line that `line_of` returns.

    Raises `UserMistake` and its subclasses, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    with session.lanes(session.device_for(question.repro)[0], question.repro) as lanes:
        line_question = line_of(session, question, lanes)
        policy = question.policy
        line = ProbedLine(
            line_question.line, line_question.judge, line_question.prober, lanes, session.reporter, policy.noise
        )
        below = line_question.below if line_question.depth is not Level.RELEASE else None
        result = search_line(
            line, line_question.scope, session.index, line_question.announced, below, known=line_question.known
        )
        names = {step.release for step in result.searched.record.steps}
        boundary = boundary_of(result.searched, line_question.candidates, line_question.left_out(names))
        result, boundary = line_question.refined(result, evolve(boundary, fault=result.fault))
    answer = _answer(result, line_question.record, boundary)
    return evolve(answer, advice=line_question.advice(answer))


def _answer(line: LineFindings, record: QuestionRecord, boundary: Boundary) -> Answer:
    """Return the answer to a question whose only failure was searched on a line."""
    searched, status = line.searched, status_of(line.searched)
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


def status_of(searched: Searched) -> Status:
    """Return how the search over a line ended.

    It is not sure if the levels below were to decide, and could not, or if the answer is about an end that could not be
    judged, such as "no failure" where the bad end fails in another way.
    """
    ended = searched.search.result.status
    is_unsure = ended in (LineStatus.OPEN, LineStatus.FLAKY) or _is_end_unjudged(searched)
    return Status.INCONCLUSIVE if is_unsure else Status(ended.value)


def _is_end_unjudged(searched: Searched) -> bool:
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
    searched: Searched, candidates: tuple[Candidate, ...] = (), left_out: Mapping[str, str] | None = None
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
    )
    return boundary.with_untried() if status_of(searched).is_change else boundary


def sides_of(searched: Searched) -> Sides | None:
    """Return the two sides of the change, the older one first; None if there is no certain change."""
    locks = [side.lock for side in searched.sides if side.lock is not None]
    if not status_of(searched).is_change or len(locks) != 2:
        return None
    return Sides(*map(Side, locks, verdicts_around(is_fix=searched.line.find_fix), searched.sides))
