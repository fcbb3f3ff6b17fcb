"""Bisects between two commits of the subject's repository, such as a tag and `main`.

Each commit runs in the environment of the newest release tagged up to the newer commit, with the requirements that the
newer commit declares. Only the package's files change, so a pure Python package needs no build.
"""

from __future__ import annotations

import time
from datetime import UTC
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.bisect.commit_answer import search_commits
from harness.bisect.commit_range import Range, find_range
from harness.bisect.commit_wording import what_next
from harness.culprit.commit import builds_of, repository_of
from harness.culprit.commit_files import CommitFiles, is_compiled
from harness.culprit.commit_runs import CommitSource, blobs_of
from harness.culprit.counterfactual import Trials
from harness.culprit.sides import PackageFiles, Side, Sides
from harness.environment import Environment
from harness.environment.resolve import ERA_MARGIN
from harness.errors import UserMistake
from harness.model import Combination, Judgement, Verdict, normalized_name
from harness.model.as_of import AsOf
from harness.planning.pins import holds_of, told_holds
from harness.planning.plan import Plan, merged_requirements
from harness.probe import Judge, Probe
from harness.repository.declared import declared_requirements, project_files, project_folder
from harness.repository.releases import Layout, ReleaseSource, find_source
from harness.request.parsing import as_of, required_name

if TYPE_CHECKING:
    from harness.bisect.answer import Answer
    from harness.model import Lock
    from harness.model.commit import Commit
    from harness.request.ends import Ends
    from harness.request.question import Question
    from harness.session import Session


@frozen
class CommitAnswer:
    """The answer, its plan, and the commits of the range by their short hashes, the oldest first."""

    plan: Plan
    answer: Answer
    commits: tuple[str, ...]


def ask_commits(session: Session, question: Question, ends: Ends, told: tuple[str, ...] = ()) -> CommitAnswer:
    """Bisect the commits between two ends; `told` are sentences about choices already made for the user.

    Raises `BadRepository`, `UserMistake`, `UnknownProject`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    begun = time.monotonic()
    device, why = session.device_for(question.repro)
    span = find_range(session, question, ends)
    base = f"environment: {span.base.project} {span.base.version}, with what {span.newer.short} asks for"
    named = {required_name(text) for text in question.with_}
    holds = holds_of(question.repro, span.base.project, named, question.hold)
    plan = Plan(
        question=question,
        repro=question.repro,
        interpreter=session.interpreter,
        device=device,
        releases=(span.base,),
        good=None,
        bad=None,
        left_out=(),
        as_of=str(as_of(question.as_of or _day_of(span))),
        requirements=merged_requirements(question.repro.dependencies, question.with_, {span.base.project}),
        holds=holds,
        choices=(base, *told_holds(holds, question.hold), *told, why),
    )
    with session.lanes(device, question.repro) as lanes:
        judge = Judge(question.repro.signature, session.store)
        trials = Trials(plan, session.prober, lanes, session.index, judge, session.reporter)
        answer = search_commits(plan, _source(session, trials, span), span.chain)
    if answer.culprit is not None:
        answer = evolve(answer, advice=what_next(plan, span.repository, answer.suspects[0]))
    answer = evolve(answer, wall_s=time.monotonic() - begun)
    return CommitAnswer(plan, answer, tuple(sha[:10] for sha in (span.start, *span.chain)))


def _source(session: Session, trials: Trials, span: Range) -> CommitSource:
    """Run the newer commit, whose failure can become the signature, and return the source that runs the others.

    To find a fix, the failure is that of the oldest commit. Raises `UserMistake` if the commits can't be run.
    """
    plan, repository = trials.plan, span.repository
    combination = _combination(plan, span, span.newer)
    lock = _lock(session, plan, combination)
    built = session.local.builder.build(lock)
    if not isinstance(built, Environment):
        raise UserMistake(f"the environment of {plan.subject} can't be installed: {built.words}")
    files = PackageFiles.of(built, [plan.subject])
    builds = builds_of(trials, plan.subject)
    if is_compiled(files) and builds is None:
        raise UserMistake(
            f"{plan.subject} has compiled parts, so its commits would have to be built",
            hint=f"--build {plan.subject} allows that; a build runs code of the commit",
        )
    release = blobs_of(files)
    found = find_source(repository, plan.subject, str(span.base.version), release)
    as_in = CommitFiles(repository, found.layout, release, builds if is_compiled(files) else None, plan.subject)
    plain = Probe(plan.repro, combination, lock=lock)
    seen = trials.prober.execute(trials.prober.prepare(as_in.put_into(plain, span.newer.sha)))
    bad = seen
    if plan.question.find_fix:
        bad = trials.prober.execute(trials.prober.prepare(as_in.put_into(plain, span.start)))
    trials = evolve(trials, judge=trials.judge.or_captured(bad))
    verdicts = (Verdict.BAD, Verdict.GOOD) if plan.question.find_fix else (Verdict.GOOD, Verdict.BAD)
    source = CommitSource(
        trials,
        Sides(*(Side(lock, verdict, seen) for verdict in verdicts)),
        ReleaseSource(found.version, found.tag, span.newer.sha, found.layout),
        ReleaseSource("", span.older.short, span.older.sha, Layout({})),
        as_in,
        repository_of(files),
        lock_of=lambda sha: (
            _lock(session, plan, _combination(plan, span, repository.describe(sha)))
            if AsOf.read(plan.as_of).is_era
            else None
        ),
    )
    judged: Judgement = trials.judge(seen)
    source.runs.judged[span.newer.sha] = (judged, seen)
    return source


def _lock(session: Session, plan: Plan, combination: Combination) -> Lock:
    resolution = session.local.resolve(Probe(plan.repro, combination))
    if resolution.lock is None:
        raise UserMistake(
            f"no environment for the commits: {resolution.words}",
            hint="--as-of none takes today's packages, not those of the commit's day; --with pins some of them",
        )
    return resolution.lock


def _combination(plan: Plan, span: Range, commit: Commit) -> Combination:
    """Combine the base release with the requirements that a commit declares.

    The date is that of the plan; with "era" it is the day of the commit itself, and the base release is only held.
    """
    repository = span.repository
    folder = project_folder(repository, commit.sha, plan.subject)
    declared = declared_requirements(project_files(repository, repository.tree(commit.sha), folder))
    said = {required_name(text) for text in plan.question.with_} | {plan.subject}
    own = tuple(text for text in declared or () if normalized_name(Requirement(text).name) not in said)
    day = repository.dates([commit.sha])[commit.sha].astimezone(UTC)
    is_era = AsOf.read(plan.as_of).is_era
    base = f"{plan.subject}=={span.base.version}"
    return Combination(
        python=plan.interpreter.version,
        requirements=(*plan.requirements, plan.subject if is_era else base, *own),
        # The base release may be newer than the commit, and a hold is allowed to be newer than the date.
        holds=(*plan.holds, base) if is_era else plan.holds,
        as_of=AsOf.read(plan.as_of).of(day),
        device=plan.device,
        # Only the commits are built; the release whose files they replace has a wheel.
        from_source=tuple(name for name in plan.question.from_source if normalized_name(name) != plan.subject),
    )


def _day_of(span: Range) -> str:
    """Return the day of the newer commit, or that of the release if it is later."""
    day = span.repository.dates([span.newer.sha])[span.newer.sha].astimezone(UTC)
    return str(max(day, span.base.uploaded + ERA_MARGIN) if span.base.uploaded is not None else day)
