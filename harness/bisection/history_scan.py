"""Scans for windows: plans the range and the interval; stored verdicts come first, then what still matters runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.arguments import check_between, with_types
from harness.bisection.answer import Effort, QuestionRecord
from harness.bisection.history import History, ReleaseRow, RowState
from harness.errors import UserMistake
from harness.events import Judged, Progress, Reporter, SearchBegan
from harness.model import Change, Judgement, Observation, Verdict
from harness.model.boundary import Boundary, Certainty
from harness.model.repro import Bounds
from harness.probing import Judge
from harness.probing.lanes import Engine
from harness.probing.line import Line, RunLog, SearchedLine, left_out_words
from harness.probing.probe import Probing, known_attempts
from harness.question.parsing import version_of
from harness.question.releases import ReleaseLine, check_ends, find_anchor, line_between, notes_on_packages
from harness.question.repros import names_meant
from harness.search import LineSearch, Scan, Trial
from harness.search.windows import Part, stride_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.environment import Index, Interpreter
    from harness.probing.lanes import Lanes
    from harness.question.question import Question
    from harness.session import Session


@frozen(field_transformer=with_types)
class HistoryRange:
    """The range of a scan: the oldest and newest release, and the largest allowed gap between runs."""

    since: str | None = None
    until: str | None = None
    max_gap: int | None = None

    def __attrs_post_init__(self) -> None:
        check_between("max_gap", self.max_gap, 1)


def history_line(
    question: Question, wanted: HistoryRange, *, index: Index, interpreter: Interpreter
) -> tuple[ReleaseLine, int]:
    """Return the line of a scan, by default from the repro's older bound to the newest release, and its stride.

    Of so many neighbouring releases at least one is run or known; if possible under a third of all. The bad end of the
    line is the release whose other packages are kept for all probes; None: the newest release that can be resolved.
    Raises the same errors as `line_of`.
    """
    bounds = question.repro.subjects.get(question.subject, Bounds())
    choices: list[str] = []
    since, until = wanted.since, wanted.until
    if since is None:
        since = _older_bound(bounds, until)
        where = f"{since} (from the repro" if since else "the oldest release (the repro has no bounds"
        choices.append(f"from {where}; --from changes it)")
    if until is None:
        choices.append("up to the newest release (--to changes it)")
    check_ends(index, question.subject, (since, until))
    if since is not None and until is not None and version_of(since) > version_of(until):
        raise UserMistake(f"--from {since} is newer than --to {until}", hint="swap them")
    line = line_between(question, since, until, index=index, interpreter=interpreter)
    # A bisection keeps other packages near the repro's bad bound, too, so the two share their runs.
    bad = str(version_of(bounds.bad)) if bounds.bad is not None else None
    near = bad if bad in line.names else None
    choices += notes_on_packages(question, line, near or until or "the newest release")
    stride = wanted.max_gap or stride_for(len(line.releases))
    if wanted.max_gap is None and stride > 1:
        choices.append(f"at least one of every {stride} adjacent releases is run or known (--max-gap changes it)")
    return evolve(line, question=evolve(line.question, good=None, bad=near)).noting(choices), stride


def _older_bound(bounds: Bounds, until: str | None) -> str | None:
    """Return the older of the repro's bounds if it is before `until`, else None."""
    known = sorted((end for end in (bounds.good, bounds.bad) if end is not None), key=Version)
    return known[0] if known and (until is None or Version(known[0]) < version_of(until)) else None


_BETWEEN = {Verdict.GOOD: RowState.BETWEEN_GOOD, Verdict.BAD: RowState.BETWEEN_BAD}


def ask(session: Session, question: Question, wanted: HistoryRange = HistoryRange()) -> History:
    """Scan the releases of a question's subject. Raises the same errors as `harness.bisection.ask.ask`."""
    with names_meant(question.combination.requirements):
        line, stride = history_line(question, wanted, index=session.index, interpreter=session.interpreter)
    with session.lanes(question.combination.device, question.repro) as lanes:
        return scanned(line, stride, session.prober, lanes, session.reporter)


def scanned(releases: ReleaseLine, stride: int, prober: Probing, lanes: Lanes, reporter: Reporter) -> History:
    """Scan a line of releases for windows. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
    begun, question = time.monotonic(), releases.question
    repro, shared = question.repro, question.combination
    line = Line(question.subject, releases.names, releases.probes(prober, *find_anchor(releases, prober)))
    record = RunLog(line, Judge(repro.signature, prober.store), reporter=reporter)
    scan = Scan(len(line.names), stride, lambda trial: record.judge.reading(record.observations[trial]))

    def progress() -> Progress:
        return Progress(scan.states, scan.remaining())

    headline = (
        f"looking for every window in which {repro.name} was broken: {line.subject} {line.names[0]} to "
        f"{line.names[-1]}, {len(line.names)} releases, Python {shared.python}, {shared.device.value}"
    )
    recognised = (f"the bug is recognised by: {repro.signature}",) if repro.signature is not None else ()
    details = (*question.notes, *recognised, *left_out_words(releases.left_out))
    reporter.report(SearchBegan(headline, details, progress()))

    engine = Engine(prober, lanes, line.probe, line.label_of, record.take, reporter, progress)
    # Without a signature, it is captured from the first failure. Before, the order must not depend on the store,
    # or the same question could be judged differently the next time.
    engine.drive(scan, width=1, until=lambda: record.signature is not None)
    known = []
    for position in reversed(range(len(line.names))):
        for attempt, observation in enumerate(known_attempts(line.probe(Trial(position)), prober)):
            trial = Trial(position, attempt)
            if trial not in record.observations:
                known.append((trial, observation, record.take(trial, observation, True)))
                scan.tell(trial, known[-1][2].verdict)
    for trial, observation, judgement in known:
        reporter.report(Judged(line.label_of(trial), judgement, observation, cached=True, progress=progress()))
    engine.drive(scan)
    boundaries = [_boundary(record, *change) for change in scan.changes]
    history = history_of(releases, boundaries, record, begun)
    return evolve(history, stride=stride, platform=prober.builder.interpreter.platform)


def _boundary(record: RunLog, part: Part, search: LineSearch) -> Boundary:
    """Return the boundary of one change of the line; without sides if its runs don't show it."""
    line, result = evolve(record.line, find_fix=part.is_fix), search.result
    certainty = Certainty(result.confidence, result.good_side, result.bad_side, is_flaky=search.is_noisy)
    return Boundary(
        Change(line.subject, line.names[part.older], line.names[part.newer], is_fix=part.is_fix),
        suspects=line.names[part.older + 1 : part.newer + 1],
        sides=SearchedLine(search, evolve(record, line=line)).sides if part.is_shown(search) else (),
        certainty=certainty,
    )


@frozen
class ReleaseRuns:
    """The verdict on a release from all its runs, the first of them with that verdict, and whether others passed."""

    judgement: Judgement
    observation: Observation
    is_flaky: bool = False


def _together(judge: Judge, runs: Sequence[Observation]) -> ReleaseRuns:
    """The verdict on all runs of a release: bad if one of them is, unless they were judged by numbers."""
    judgement, first = judge.together(runs)
    bad = [run for run in runs if judge(run).verdict is Verdict.BAD]
    judged = [run for run in runs if judge(run).verdict is not Verdict.SKIP]
    if judge.reading(first) is not None or len(bad) in (0, len(judged)):
        return ReleaseRuns(judgement, first)
    worst = judge(bad[0])
    worst = evolve(worst, reason=f"{worst.reason} (in {len(bad)} of {len(judged)} runs)")
    return ReleaseRuns(worst, bad[0], is_flaky=True)


def history_of(line: ReleaseLine, boundaries: Sequence[Boundary], record: RunLog, begun: float) -> History:
    """Build the history of a finished scan that began at `begun` (seconds)."""
    observations: dict[int, list[Observation]] = {}
    for trial, observation in sorted(record.observations.items()):
        observations.setdefault(trial.position, []).append(observation)
    ran = {observation.key for observation in record.observations.values() if observation.outcome.ran}
    probes = len({step.release for step in record.steps if not step.cached and step.observation in ran})
    return History(
        QuestionRecord.of(line.question),
        record.signature,
        tuple(boundaries),
        _rows(line, {position: _together(record.judge, runs) for position, runs in observations.items()}),
        tuple(record.steps),
        effort=Effort(probes, wall_s=time.monotonic() - begun),
    )


def _rows(line: ReleaseLine, runs: Mapping[int, ReleaseRuns]) -> tuple[ReleaseRow, ...]:
    verdicts = {position: run.judgement.verdict for position, run in runs.items()}
    rows = [ReleaseRow(name, RowState.LEFT_OUT, why) for name, why in line.left_out.items()]
    for position, release in enumerate(line.releases):
        name = str(release.version)
        day = release.uploaded.date().isoformat() if release.uploaded else ""
        if (run := runs.get(position)) is not None:
            state, observation = RowState(run.judgement.verdict.value), run.observation
            rows.append(
                ReleaseRow(name, state, run.judgement.reason, day, observation.key, observation.measured, run.is_flaky)
            )
        else:
            rows.append(_not_run(line, name, day, position, verdicts))
    return tuple(sorted(rows, key=lambda row: Version(row.release)))


def _not_run(line: ReleaseLine, name: str, day: str, position: int, verdicts: Mapping[int, Verdict]) -> ReleaseRow:
    testable = [p for p, verdict in verdicts.items() if verdict is not Verdict.SKIP]
    before = max((p for p in testable if p < position), default=None)
    after = min((p for p in testable if p > position), default=None)
    if before is None or after is None or verdicts[before] is not verdicts[after]:
        return ReleaseRow(name, RowState.UNKNOWN, "not run", day)
    verdict = verdicts[before].value
    words = f"not run: {line.names[before]} and {line.names[after]} around it are {verdict}"
    return ReleaseRow(name, _BETWEEN[verdicts[before]], words, day)
