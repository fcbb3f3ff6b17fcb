"""The question between two commits of the subject's repository, such as a tag and `main`: its line, and merges.

Each commit runs in the environment of the newest release tagged up to the newer commit, with the requirements that the
newer commit declares. Only the package's files change, so a pure Python package needs no build.
"""

from __future__ import annotations

import shlex
from datetime import UTC
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.bisection.answer import Answer, QuestionRecord
from harness.bisection.boundaries import LineFindings, LineQuestion
from harness.culprit.commit import (
    CommitFiles,
    CommitSource,
    blobs_of,
    builds_of,
    finding_of,
    inside_merge,
    is_compiled,
    keep_runs,
    known_among,
    line_among,
    open_repository,
    pair_of,
    repository_of,
)
from harness.culprit.proofs import Trials
from harness.culprit.sides import PackageFiles, Side, Sides
from harness.environment import CannotBuild
from harness.environment.dates import ERA_MARGIN, as_of
from harness.errors import BadRepository, UserMistake
from harness.events import SearchBegan
from harness.model import Change, Combination, Lock, Release, Repro, name_of, normalized_name
from harness.model.culprit import Commit, Finding, Level
from harness.model.lock import AsOf
from harness.model.verdict import verdicts_around
from harness.probing import Judge, Probe
from harness.probing.probe import environment_with
from harness.question.ends import End, EndKind
from harness.question.releases import notes_on_holds, releases_on_line
from harness.repository.declared import declared_requirements, project_files, project_folder
from harness.repository.releases import Layout, ReleaseSource, find_source, tagged_up_to, tags_of

if TYPE_CHECKING:
    from harness.probing.lanes import Lanes
    from harness.question.question import Question
    from harness.repository.git import Repository
    from harness.session import Session


@frozen(kw_only=True)
class CommitQuestion(LineQuestion):
    """Which commit of a range? Its line has the hashes `commits`, the oldest first, as `source` runs them."""

    source: CommitSource
    commits: tuple[str, ...]

    def refined(self, result: LineFindings) -> LineFindings:
        """Return the result for the commit inside a merged branch, if a merge brought the change."""
        searched, boundary = result.searched, result.boundary
        keep_runs(self.source, self.commits, searched)
        source = evolve(self.source, trials=evolve(self.source.trials, judge=searched.record.judge))
        pair = pair_of(source, self.commits, searched)
        if isinstance(pair, str):
            return result
        pair = inside_merge(source, pair, self.question.policy)
        before, after = (sha[:10] for sha in pair)
        moved = Finding(Level.COMMIT, (Change(self.question.subject, before, after),))
        finding = finding_of(source, pair, moved, len(self.commits) - 1)
        change = evolve(boundary.change, before=before, after=after)
        sides = tuple(source.runs.judged[sha][1] for sha in pair)
        boundary = evolve(boundary, change=change, suspects=(after,), sides=sides)
        return evolve(result, boundary=boundary, findings=(finding,))

    def advice(self, answer: Answer) -> str:
        """Return the command that runs the commit again."""
        return _what_next(answer.question, self.source.repository, answer.suspects[0]) if answer.findings else ""


def commit_question(session: Session, question: Question, lanes: Lanes) -> CommitQuestion:
    """Return the question about the commits between two ends, after a run of the newer one.

    Raises `BadRepository`, `UserMistake`, `UnknownProject`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    span = find_range(session, question)
    base = f"environment: {span.base.project} {span.base.version}, with the requirements of {span.newer.short}"
    subject, repro = question.subject, question.repro
    day = as_of(question.as_of or _day_of(span))
    question = evolve(question, as_of=str(day))
    headline = f"looking for the commit that broke {repro.name}: {subject} {span.older.short} to {span.newer.short}"
    held = notes_on_holds(repro, subject, question.combination.holds)
    session.reporter.report(SearchBegan(headline, (base, *held, *question.notes)))
    judge = Judge(repro.signature, session.store)
    trials = Trials(question, session.prober, lanes, session.index, judge, session.reporter)
    source = _source(session, trials, span, day)
    commits = (source.base, *span.chain)
    return CommitQuestion(
        source=source,
        commits=commits,
        line=line_among(source, commits),
        question=question,
        prober=session.prober,
        judge=source.trials.judge,
        known=known_among(source, commits),
    )


def _what_next(record: QuestionRecord, repository: Repository, commit: str) -> str:
    """Return a sentence with the command that runs the found commit again; "" if `harness probe` lacks its options."""
    if {"--project", "--extra", "--group", "--unpin"}.intersection(record.typed):
        return ""
    typed = [word for word in record.typed if word != "--repro"]
    if not {"--repro", "--run"}.intersection(record.typed):
        typed = [shlex.quote(record.repro.name), *typed]
    folder = shlex.quote(f"{record.subject} @ {repository.folder}@{commit}")
    return f"To run that commit again: harness probe {' '.join(typed)} --with {folder}"


def _known(end: End | None) -> End:
    if end is None:
        raise ValueError("the bad end of a question between commits is known")
    return end


@frozen
class CommitRange:
    """Two commits in the order of history, and the release whose environment all commits between them run in."""

    repository: Repository
    older: Commit
    newer: Commit
    base: Release

    @property
    def chain(self) -> tuple[str, ...]:
        """The hashes of the commits after the start up to the newer one, the oldest first, along first parents."""
        return self.repository.first_parents(self.start, self.newer.sha)

    @property
    def start(self) -> str:
        """The merge base: the older commit itself, unless it is on another branch."""
        return self.repository.merge_base(self.older.sha, self.newer.sha)


def find_range(session: Session, question: Question) -> CommitRange:
    """Find the range between two ends. Raises `BadRepository`, `UserMistake`, `UnknownProject` and `NoNetwork`."""
    url = _own_repository(session, question) if question.policy.git == "auto" else ""
    repository = open_repository(question.policy.git, url, session.workspace.clones)
    tags = repository.tags()
    subject = question.subject
    bad = _commit(repository, tags, _known(question.bad), subject)
    good = _commit(repository, tags, question.good, subject) if question.good is not None else None
    newer = good if question.policy.find_fix and good is not None else bad
    if question.policy.find_fix and good is None:
        newer = repository.commit("HEAD")
    base, tagged = _base(session, question, repository, newer)
    older = bad if question.policy.find_fix else good or repository.describe(tagged)
    if older.sha == newer.sha:
        raise UserMistake(f"both ends are commit {older.short}; there is nothing between them")
    if repository.is_ancestor(newer.sha, older.sha):
        names = ("--bad", "--good") if question.policy.find_fix else ("--good", "--bad")
        raise UserMistake(
            f"{names[0]} {older.short} is newer than {names[1]} {newer.short}",
            hint="swap them, or add --find-fix to find the commit that fixed it",
        )
    return CommitRange(repository, older, newer, base)


def _own_repository(session: Session, question: Question) -> str:
    """Return the URL of the repository in the metadata of the subject's newest release, "" for none.

    Installs that release without its dependencies.
    """
    usable = _usable(session, question)
    if not usable:
        return ""
    newest = max(usable, key=lambda release: release.version)
    combination = Combination(
        python=session.interpreter.version,
        requirements=(f"{question.subject}=={newest.version}",),
        prereleases=(question.subject,) if newest.version.is_prerelease else (),
        only_named=True,
    )
    lock = session.local.resolve(Probe(question.repro, combination)).lock
    built = environment_with(session.local, lock) if lock is not None else None
    if built is None:
        return ""
    return repository_of(PackageFiles.of(built, [question.subject]))


def _usable(session: Session, question: Question) -> tuple[Release, ...]:
    """Return the releases of the subject that can be installed on this machine."""
    releases = session.index.releases(question.subject)
    return releases_on_line(releases, question, session.interpreter, (None, None))[0]


def _commit(repository: Repository, tags: dict[str, str], end: End, subject: str) -> Commit:
    """Return the commit of an end, which is a release with a tag or a revision."""
    if end.kind is EndKind.COMMIT:
        return repository.commit(end.text)
    if end.kind is not EndKind.RELEASE:
        raise UserMistake(f"{end.text} is a {end.kind.value}, the other end is a commit", hint="give two commits")
    if named := tags_of(end.text, tags, subject):
        return repository.describe(tags[named[0]])
    try:
        return repository.commit(end.text)
    except BadRepository as error:
        raise BadRepository(f"{repository.folder} has no tag for {subject} {end.text}", hint=error.hint) from error


def _base(session: Session, question: Question, repository: Repository, newer: Commit) -> tuple[Release, str]:
    """Return the newest installable release with a tag up to a commit, and the hash of the tagged commit."""
    subject = question.subject
    tagged = tagged_up_to(repository, subject, newer.sha)
    before = [release for release in _usable(session, question) if release.version in tagged]
    if not before:
        raise BadRepository(
            f"no release of {subject} that can be installed has a tag up to commit {newer.short}",
            hint="get the tags with git fetch --tags, or choose another interpreter with --python",
        )
    newest = max(before, key=lambda release: release.version)
    return newest, tagged[newest.version][1]


def _source(session: Session, trials: Trials, span: CommitRange, day: AsOf) -> CommitSource:
    """Run the newer commit, whose failure can become the signature, and return the source that runs the others.

    To find a fix, the failure is that of the oldest commit. Raises `UserMistake` if the commits can't be run.
    """
    question, repository = trials.question, span.repository
    subject, find_fix = question.subject, question.policy.find_fix
    combination = _combination(question, day, span, span.newer)
    lock = _lock(session, question.repro, combination)
    try:
        built = session.local.builder.build(lock)
    except CannotBuild as why:
        raise UserMistake(f"the environment of {subject} can't be installed: {why}") from why
    files = PackageFiles.of(built, [subject])
    builds = builds_of(trials, subject)
    if is_compiled(files) and builds is None:
        raise UserMistake(
            f"{subject} has compiled parts, so its commits would have to be built",
            hint=f"--build {subject} allows that; a build runs code of the commit",
        )
    release = blobs_of(files)
    tagged = find_source(repository, subject, str(span.base.version), release)
    as_in = CommitFiles(repository, tagged.layout, release, builds if is_compiled(files) else None, subject)
    plain = Probe(question.repro, combination, lock=lock)
    newer = trials.prober.execute(trials.prober.prepare(as_in.put_into(plain, span.newer.sha)))
    bad = newer
    if find_fix:
        bad = trials.prober.execute(trials.prober.prepare(as_in.put_into(plain, span.start)))
    trials = evolve(trials, judge=trials.judge.or_captured(bad))
    verdicts = verdicts_around(is_fix=find_fix)
    source = CommitSource(
        trials,
        Sides(*(Side(lock, verdict, newer) for verdict in verdicts)),
        ReleaseSource(tagged.version, tagged.tag, span.newer.sha, tagged.layout),
        ReleaseSource("", span.older.short, span.older.sha, Layout({})),
        as_in,
        repository_of(files),
        lock_of=lambda sha: (
            _lock(session, question.repro, _combination(question, day, span, repository.describe(sha)))
            if day.is_era
            else None
        ),
    )
    source.runs.judged[span.newer.sha] = (trials.judge(newer), newer)
    return source


def _lock(session: Session, repro: Repro, combination: Combination) -> Lock:
    resolution = session.local.resolve(Probe(repro, combination))
    if resolution.lock is None:
        raise UserMistake(
            f"no environment for the commits: {resolution.words}",
            hint="--as-of none takes today's packages, not those of the commit's day; --with pins some of them",
        )
    return resolution.lock


def _combination(question: Question, day: AsOf, span: CommitRange, commit: Commit) -> Combination:
    """Combine the base release with the requirements that a commit declares.

    The date is `day`; with "era" it is the day of the commit itself, and the base release is only held.
    """
    repository, subject, shared = span.repository, question.subject, question.combination
    folder = project_folder(repository, commit.sha, subject)
    declared = declared_requirements(project_files(repository, repository.tree(commit.sha), folder))
    replaced = {name_of(text) for text in shared.requirements if text not in question.repro.dependencies} | {subject}
    own = tuple(text for text in declared or () if name_of(text) not in replaced)
    moment = repository.dates([commit.sha])[commit.sha].astimezone(UTC)
    is_era = day.is_era
    base = f"{subject}=={span.base.version}"
    return evolve(
        shared,
        requirements=(*shared.requirements, subject if is_era else base, *own),
        # The base release may be newer than the commit, and a hold is allowed to be newer than the date.
        holds=(*shared.holds, base) if is_era else shared.holds,
        as_of=day.of(moment),
        # Only the commits are built; the release whose files they replace has a wheel.
        from_source=tuple(name for name in shared.from_source if normalized_name(name) != subject),
    )


def _day_of(span: CommitRange) -> str:
    """Return the day of the newer commit, or that of the release if it is later."""
    day = span.repository.dates([span.newer.sha])[span.newer.sha].astimezone(UTC)
    return str(max(day, span.base.uploaded + ERA_MARGIN) if span.base.uploaded is not None else day)
