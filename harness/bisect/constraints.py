"""Constraints confirmed by runs: what to write into a file until the culprit is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.bisect.answer import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.bisect.answer import Answer
    from harness.bisect.boundary import Boundary
    from harness.bisect.upgrade_answer import PackageCulprit
    from harness.model.culprit import Culprit


def constraint_of(boundary: Boundary) -> str:
    """Return the loosest constraint that keeps a package on the good side, such as `numpy<2`; "" if there is none."""
    name = boundary.package
    if boundary.first_bad is None:  # the package is no longer there at the bad end
        return f"{name}=={boundary.last_good}"
    if boundary.last_good is None:
        return ""
    older, newer = _version(boundary.last_good), _version(boundary.first_bad)
    if older is None or newer is None:
        return f"{name}=={boundary.last_good}"
    if older > newer:  # the bad end has the older release
        return f"{name}>={boundary.last_good}"
    if not boundary.is_certain:
        return f"{name}<={boundary.last_good}"
    return f"{name}<{_shortest(older, newer)}"


def constraints_of(culprits: Sequence[PackageCulprit]) -> list[str]:
    """Return one constraint for each culprit, but only one for culprits that break the tests only together."""
    settled: set[str] = set()
    found = []
    for culprit in culprits:
        if culprit.package in settled:
            continue
        settled |= {culprit.package, *culprit.together_with}
        if text := constraint_of(culprit.boundary):
            found.append(text)
    return found


def constraint_until_then(answer: Answer) -> str:
    """Return the constraint on the subject that a bisection over its releases confirmed, or "".

    For a fix it allows only the fixed release and later ones.
    """
    if answer.status is Status.FOUND and answer.last_good and answer.first_bad:
        older, newer = _version(answer.last_good), _version(answer.first_bad)
        if older is None or newer is None or len(answer.suspects) != 1:
            return f"{answer.subject}<={answer.last_good}"
        return f"{answer.subject}<{_shortest(older, newer)}"
    if answer.status is Status.FIXED and answer.first_good:
        return f"{answer.subject}>={answer.first_good}"
    return ""


def constraint_with(answer: Answer, culprit: Culprit) -> str:
    """Return a constraint on the culprit's package if a run proved that this is enough, else that of the answer."""
    finding = culprit.findings[0]
    shown = finding.proofs[0] if finding.proofs else None
    if answer.status is not Status.FOUND or len(finding.packages) != 1 or shown is None or not shown.holds:
        return answer.constraint
    change = finding.packages[0]
    if change.name == answer.subject or change.before is None or change.after is None:
        return answer.constraint
    older, newer = _version(change.before), _version(change.after)
    if older is None or newer is None or older > newer:
        return f"{change.name}=={change.before}"
    return f"{change.name}<{_shortest(older, newer)}"


def _shortest(older: Version, newer: Version) -> str:
    """Return the newer version without trailing zeros (2.0.0 is 2), unless that is not above the older one."""
    if newer.is_prerelease or newer.is_postrelease or newer.epoch:
        return str(newer)
    parts = list(newer.release)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    text = ".".join(map(str, parts))
    return text if older < Version(text) else str(newer)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
