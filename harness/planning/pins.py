"""The day and the pre-releases that pinned requirements imply, and the holds of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from harness.environment.index import parsed_version
from harness.environment.resolve import ERA_MARGIN
from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.repro import Bounds
from harness.request.parsing import as_of, required_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from datetime import datetime

    from harness.environment import Index
    from harness.model import Repro

NO_HOLDS = "none"  # --hold none


def one_date(text: str | None, pinned: Sequence[str], index: Index) -> datetime | None:
    """Return the date that `--as-of` means for one probe; for "era" the day of the `pinned` releases.

    None means the newest packages. Raises `UserMistake`, and for "era" also `UnknownProject` and `NoNetwork`.
    """
    wanted = as_of(text)
    return wanted.of(era_of(pinned, index) if wanted.is_era else None)


def era_of(requirements: Sequence[str], index: Index) -> datetime | None:
    """Return the day of the newest release that is pinned with ==, None if the index has no time for any of them.

    Raises `UserMistake` if nothing is pinned, `UnknownProject` and `NoNetwork`.
    """
    pinned = [(parsed.name, version) for parsed in map(Requirement, requirements) if (version := _pinned(parsed))]
    if not pinned:
        raise UserMistake(
            "as-of era needs a release to take the day from", hint="pin one, such as transformers==4.53.0"
        )
    releases = [index.release(project, version) for project, version in pinned]
    uploaded = [release.uploaded for release in releases if release is not None and release.uploaded is not None]
    return max(uploaded) + ERA_MARGIN if uploaded else None


def _pinned(requirement: Requirement) -> str | None:
    pins = [clause.version for clause in requirement.specifier if clause.operator in ("==", "===")]
    return pins[0] if len(pins) == 1 and not pins[0].endswith(".*") else None


def pinned_prereleases(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the names of projects that are pinned to a pre-release."""
    pinned = [
        (normalized_name(parsed.name), parsed_version(_pinned(parsed))) for parsed in map(Requirement, requirements)
    ]
    return tuple(name for name, version in pinned if version is not None and version.is_prerelease)


def subject_of(repro: Repro, named: Iterable[str]) -> str:
    """Return the first of these projects that is a subject of the repro, else its default one; "" if it has none."""
    return next((name for name in named if name in repro.subjects), next(iter(repro.subjects), ""))


def holds_of(repro: Repro, subject: str, named: Container[str], hold: Sequence[str]) -> tuple[str, ...]:
    """Return the holds for a subject: `hold` as given by the user, then the repro's own holds for that subject.

    A user's hold, or a requirement of a project in `named`, replaces a hold of the repro; "none" in `hold` leaves out
    all of the repro's.
    """
    given = tuple(text for text in hold if text != NO_HOLDS)
    if NO_HOLDS in hold:
        return given
    said = {required_name(text) for text in given}
    own = repro.subjects.get(subject, Bounds()).hold
    return (*given, *(text for text in own if required_name(text) not in said and required_name(text) not in named))


def told_holds(holds: Sequence[str], hold: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence about the repro's own holds, those not in `hold`; empty if there are none."""
    kept = [text for text in holds if text not in hold]
    return (f"held: {', '.join(kept)} (by the repro; --hold and --with change it)",) if kept else ()
