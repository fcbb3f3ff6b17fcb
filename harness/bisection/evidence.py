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
from harness.model import Lock, Outcome, RaisedException, name_of
from harness.model.culprit import Culprit, Evidence
from harness.model.signature import last_exception
from harness.probing.probe import environment_with
from harness.question.revisions import LockHistory
from harness.repository.git import range_url, repository_url
from harness.repository.releases import built_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from harness.probing.probe import Probing


def with_evidence(answer: Answer, prober: Probing) -> Answer:
    """Add evidence to each culprit that is one package and has runs of both of its releases."""
    failures = tuple(
        evolve(
            failure,
            culprits=tuple(
                evolve(
                    culprit,
                    evidence=(
                        *_evidence(culprit, _exceptions(culprit, failure, answer, prober), prober),
                        *_commits(culprit, prober),
                    ),
                )
                for culprit in failure.culprits
            ),
        )
        for failure in answer.failures
    )
    return evolve(answer, failures=failures)


def lost_what_it_misses(culprit: Culprit, raised: RaisedException | None, prober: Probing) -> bool:
    """Whether the culprit's own release removed or changed what an exception misses: no other package is to blame."""
    pieces = _evidence(culprit, [raised] if raised is not None else [], prober)
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


def _evidence(culprit: Culprit, exceptions: Collection[RaisedException], prober: Probing) -> tuple[Evidence, ...]:
    locks = [side.lock for side in culprit.boundary.sides if side.lock is not None]
    if len(locks) != 2 or len(culprit.packages) != 1:
        return ()
    package = culprit.packages[0].name
    older, newer = (lock.version_of(package) for lock in locks)
    if older is None or newer is None or not exceptions:
        return ()
    before, after = (_place(lock, prober) for lock in locks)
    if before is None or after is None:
        return ()
    pieces: dict[tuple[str, str], Evidence] = {}
    with contextlib.suppress(OSError):  # another process removed the environment
        for raised in exceptions:
            explained = api_evidence(raised, package, older=(older, before), newer=(newer, after))
            pieces |= {(piece.kind, piece.name): piece for piece in explained}
    return tuple(pieces.values())


def _commits(culprit: Culprit, prober: Probing) -> Iterator[Evidence]:
    """Yield the range of commits between the two builds of the culprit, if both name theirs."""
    locks = [side.lock for side in culprit.boundary.sides if side.lock is not None]
    change = culprit.packages[0] if len(culprit.packages) == 1 else None
    if change is None or len(locks) != 2:
        return
    commits: list[str] = []
    repository = ""
    for lock in locks:
        version, place = lock.version_of(change.name), _place(lock, prober)
        if version is None or place is None:
            return
        files = PackageFiles.at(place, [change.name])
        commits.append(built_from(version, files.digests, files.text))
        metadata = next((path for path in files.digests if path.endswith(".dist-info/METADATA")), "")
        repository = repository_url(files.text(metadata)) or repository
    older, newer = commits
    if older and newer and older != newer:
        link = range_url(repository, older, newer)
        text = f"built from the commits {older[:10]} and {newer[:10]}" + (f": {link}" if link else "")
        yield Evidence("commits", change.name, text)


def _place(lock: Lock, prober: Probing) -> Path | None:
    """Return the folder where a lock is installed, or None if it can't be built: missing evidence is no error."""
    with contextlib.suppress(HarnessError):
        built = environment_with(prober, lock)
        return site_packages(built.folder) if built is not None and built.folder is not None else None
    return None
