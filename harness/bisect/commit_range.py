"""The commits between two ends that a user names, and the release whose environment they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.culprit.commit import open_repository, repository_of
from harness.culprit.sides import PackageFiles
from harness.environment import Environment
from harness.errors import BadRepository, UserMistake
from harness.model import Combination, normalized_name
from harness.planning.plan import why_left_out
from harness.probe import Probe
from harness.repository.releases import tagged_up_to, tags_of
from harness.request.ends import EndKind

if TYPE_CHECKING:
    from harness.model import Release
    from harness.model.commit import Commit
    from harness.repository.git import Repository
    from harness.request.ends import End, Ends
    from harness.request.question import Question
    from harness.session import Session


@frozen
class Range:
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


def find_range(session: Session, question: Question, ends: Ends) -> Range:
    """Find the range between two ends. Raises `BadRepository`, `UserMistake`, `UnknownProject` and `NoNetwork`."""
    url = _own_repository(session, question) if question.git == "auto" else ""
    repository = open_repository(question.git, url, session.workspace.clones)
    tags = repository.tags()
    subject = normalized_name(question.subject)
    bad = _commit(repository, tags, ends.bad, subject)
    good = _commit(repository, tags, ends.good, subject) if ends.good is not None else None
    newer = good if question.find_fix and good is not None else bad
    if question.find_fix and good is None:
        newer = repository.commit("HEAD")
    base, tagged = _base(session, question, repository, newer)
    older = bad if question.find_fix else good or repository.describe(tagged)
    if older.sha == newer.sha:
        raise UserMistake(f"both ends are commit {older.short}; there is nothing between them")
    if repository.is_ancestor(newer.sha, older.sha):
        names = ("--bad", "--good") if question.find_fix else ("--good", "--bad")
        raise UserMistake(
            f"{names[0]} {older.short} is newer than {names[1]} {newer.short}",
            hint="swap them, or say --find-fix to find the commit that fixed it",
        )
    return Range(repository, older, newer, base)


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
    built = session.local.builder.build(lock) if lock is not None else None
    if not isinstance(built, Environment):
        return ""
    return repository_of(PackageFiles.of(built, [normalized_name(question.subject)]))


def _usable(session: Session, question: Question) -> list[Release]:
    """Return the releases of the subject that can be installed on this machine."""
    wheel_tags = frozenset(session.interpreter.wheel_tags())
    return [
        release
        for release in session.index.releases(normalized_name(question.subject))
        if why_left_out(release, question, session.interpreter, wheel_tags) is None
    ]


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
    subject = normalized_name(question.subject)
    tagged = tagged_up_to(repository, subject, newer.sha)
    before = [release for release in _usable(session, question) if release.version in tagged]
    if not before:
        raise BadRepository(
            f"no release of {subject} that can be installed has a tag up to commit {newer.short}",
            hint="git fetch --tags brings tags; --python takes another interpreter",
        )
    newest = max(before, key=lambda release: release.version)
    return newest, tagged[newest.version][1]
