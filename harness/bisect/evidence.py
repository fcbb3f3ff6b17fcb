"""Adds evidence to an answer: how the public APIs of a culprit's two releases explain the failure. Runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisect.groups import Group, seen_by
from harness.bisect.upgrade_wording import sentence_of
from harness.culprit.api_evidence import api_evidence
from harness.environment import Environment
from harness.environment.location import site_packages
from harness.errors import HarnessError
from harness.model import Outcome, RaisedException
from harness.model.signature import last_exception

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer
    from harness.environment import Builder
    from harness.model import Lock, Observation
    from harness.model.culprit import Evidence

Seen = dict[tuple[str, str, str], tuple["Evidence", ...]]


def with_evidence(answer: UpgradeAnswer, builder: Builder, log_of: Callable[[Observation], str]) -> UpgradeAnswer:
    """Add evidence to each culprit that has runs of both releases; `log_of` returns the output of a run."""
    seen: Seen = {}
    groups = tuple(
        evolve(
            group,
            culprits=tuple(
                evolve(culprit, evidence=_evidence(culprit, _exceptions(culprit, group, answer, log_of), builder, seen))
                for culprit in group.culprits
            ),
        )
        for group in answer.groups
    )
    if groups == answer.groups:
        return answer
    told = evolve(answer, groups=groups)
    return evolve(told, sentence=sentence_of(told))


def evidence_of(
    raised: RaisedException, package: str, before: Lock, after: Lock, builder: Builder
) -> tuple[Evidence, ...]:
    """Return what the public APIs of two releases of a package say about a failure."""
    older, newer = before.version_of(package), after.version_of(package)
    places = _place(before, builder), _place(after, builder)
    if older is None or newer is None or places[0] is None or places[1] is None:
        return ()
    return _told(raised, package, (older, places[0]), (newer, places[1]))


def _exceptions(
    culprit: PackageCulprit, group: GroupAnswer, answer: UpgradeAnswer, log_of: Callable[[Observation], str]
) -> list[RaisedException]:
    """Return the exceptions of the group at the bad end and with the first bad release."""
    found = []
    for observation in (*answer.sides[-1:], *culprit.boundary.sides[-1:]):
        one = seen_by(observation, Group(group.tests, group.signature)) if group.tests else observation
        raised = one.exception
        if raised is None and one.outcome is Outcome.EXITED:
            raised = last_exception(log_of(observation))
        if raised is not None:
            found.append(raised)
    return found


def _evidence(
    culprit: PackageCulprit, exceptions: list[RaisedException], builder: Builder, seen: Seen
) -> tuple[Evidence, ...]:
    boundary = culprit.boundary
    locks = [side.lock for side in boundary.sides if side.lock is not None]
    if len(locks) != 2 or boundary.last_good is None or boundary.first_bad is None:
        return ()
    found: dict[tuple[str, str], Evidence] = {}
    for raised in exceptions:
        key = (boundary.package, raised.type, raised.message)
        if key not in seen:
            older, newer = _place(locks[0], builder), _place(locks[1], builder)
            seen[key] = ()
            if older is not None and newer is not None:
                versions = [lock.version_of(boundary.package) or "" for lock in locks]
                ends = ((versions[0], older), (versions[1], newer))
                seen[key] = _told(raised, boundary.package, *ends)
        found |= {(one.kind, one.name): one for one in seen[key]}
    return tuple(found.values())


def _told(
    raised: RaisedException, package: str, older: tuple[str, Path], newer: tuple[str, Path]
) -> tuple[Evidence, ...]:
    try:
        return api_evidence(raised, package, older=older, newer=newer)
    except OSError:  # another process removed the environment
        return ()


def _place(lock: Lock, builder: Builder) -> Path | None:
    """Return the folder where a lock is installed, or None if it can't be built: missing evidence is no error."""
    try:
        built = builder.build(lock, look=False)  # its runs were compared
    except HarnessError:
        return None
    if not isinstance(built, Environment) or built.folder is None:
        return None
    return site_packages(built.folder)
