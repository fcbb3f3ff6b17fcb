"""Adds what runs do not tell to culprits. Runs nothing.

That is how the public APIs of two releases explain the failure, and the commit of the user's repository that brought a
release in.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisection.answer import Answer, Failure, Status
from harness.bisection.failures import Group, reduced_to
from harness.culprit.api_evidence import api_evidence
from harness.culprit.sides import PackageFiles
from harness.environment.workspace import site_packages
from harness.errors import HarnessError
from harness.model import Outcome, RaisedException, name_of
from harness.model.culprit import Culprit, Evidence
from harness.model.signature import last_exception
from harness.probing.probe import environment_with
from harness.question.revisions import LockHistory
from harness.repository.git import range_url, repository_url
from harness.repository.releases import built_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from harness.probing.probe import Probing


_Side = tuple[str, "Path"]  # the version of a package, and the folder where it is installed


def with_evidence(answer: Answer, prober: Probing) -> Answer:
    """Add evidence to each culprit that is one package and has runs of both of its releases."""

    def told(culprit: Culprit, failure: Failure) -> Culprit:
        if (sides := _sides(culprit, prober)) is None:
            return culprit
        name, exceptions = culprit.packages[0].name, _exceptions(culprit, failure, answer, prober)
        return evolve(culprit, evidence=(*_evidence(name, sides, exceptions), *_commits(name, sides)))

    failures = (
        evolve(failure, culprits=tuple(told(culprit, failure) for culprit in failure.culprits))
        for failure in answer.failures
    )
    return evolve(answer, failures=tuple(failures))


def lost_what_it_misses(culprit: Culprit, raised: RaisedException | None, prober: Probing) -> bool:
    """Whether the culprit's own release removed or changed what an exception misses: no other package is to blame."""
    sides = _sides(culprit, prober) if raised is not None else None
    pieces = _evidence(culprit.packages[0].name, sides, [raised]) if raised is not None and sides is not None else ()
    return any(piece.kind != "new-message" for piece in pieces)


def with_introductions(answer: Answer, root: Path | None) -> Answer:
    """Add the commit of the project's repository that brought it in to each culprit, if the history of its lock says.

    `root` is the project, None without one.
    """
    if root is None or not answer.culprits or answer.status is not Status.FOUND:
        return answer
    python = answer.question.python
    names = {change.name for change in answer.guilty_changes}
    history = LockHistory.of(root, names.union(map(name_of, answer.question.repro.dependencies)), python)
    if history is None:
        return answer

    def introduced(culprit: Culprit) -> Culprit:
        changes = [change for change in culprit.packages if change.after is not None]
        found = (history.introduction(change.name, str(change.after), python) for change in changes)
        return evolve(culprit, introduction=next(filter(None, found), None))

    failures = (evolve(failure, culprits=tuple(map(introduced, failure.culprits))) for failure in answer.failures)
    return evolve(answer, failures=tuple(failures))


def _exceptions(culprit: Culprit, failure: Failure, answer: Answer, prober: Probing) -> Collection[RaisedException]:
    """Return the exceptions of the failure at the bad end and on the bad side of the culprit, each once."""
    exceptions: dict[tuple[str, str], RaisedException] = {}
    side = culprit.boundary.sides[:1] if culprit.boundary.is_fix else culprit.boundary.sides[-1:]
    for observation in (*answer.comparison.runs[-1:], *side):
        group = Group(failure.tests, failure.signature) if failure.signature is not None else None
        run = reduced_to(observation, group) if group is not None else observation
        raised = run.exception
        if raised is None and run.outcome is Outcome.EXITED:
            raised = last_exception(prober.store.log(observation))
        if raised is not None:
            exceptions[raised.type, raised.message] = raised
    return exceptions.values()


def _sides(culprit: Culprit, prober: Probing) -> tuple[_Side, _Side] | None:
    """Return both sides of a culprit that is one package; None if there are no two, or one of them can't be built."""
    locks = [side.lock for side in culprit.boundary.sides if side.lock is not None]
    if len(locks) != 2 or len(culprit.packages) != 1:
        return None
    versions = [version for lock in locks if (version := lock.version_of(culprit.packages[0].name)) is not None]
    if len(versions) != 2:
        return None
    with contextlib.suppress(HarnessError):  # missing evidence is no error
        built = [environment_with(prober, lock) for lock in locks]
        folders = [environment.folder for environment in built if environment is not None and environment.folder]
        if len(folders) == 2:
            older, newer = zip(versions, map(site_packages, folders), strict=True)
            return older, newer
    return None


def _evidence(name: str, sides: tuple[_Side, _Side], exceptions: Iterable[RaisedException]) -> tuple[Evidence, ...]:
    older, newer = sides
    pieces: dict[tuple[str, str], Evidence] = {}
    with contextlib.suppress(OSError):  # another process removed the environment
        for raised in exceptions:
            explained = api_evidence(raised, name, older=older, newer=newer)
            pieces |= {(piece.kind, piece.name): piece for piece in explained}
    return tuple(pieces.values())


def _commits(name: str, sides: tuple[_Side, _Side]) -> Iterator[Evidence]:
    """Yield the range of commits between the two builds of a package, if both name theirs."""
    commits: list[str] = []
    repository = ""
    for version, place in sides:
        files = PackageFiles.at(place, [name])
        commits.append(built_from(version, files.digests, files.text))
        metadata = next((path for path in files.digests if path.endswith(".dist-info/METADATA")), "")
        repository = repository_url(files.text(metadata)) or repository
    older, newer = commits
    if older and newer and older != newer:
        link = range_url(repository, older, newer)
        text = f"built from the commits {older[:10]} and {newer[:10]}" + (f": {link}" if link else "")
        yield Evidence("commits", name, text)
