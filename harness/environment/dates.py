"""The day whose packages a probe gets: a date, or that of a pinned release."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from harness.errors import UserMistake
from harness.model.lock import AsOf
from harness.model.requirements import exact_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.environment.index import Index

# The matching release of a sister package often follows within minutes.
ERA_MARGIN = timedelta(hours=1)


def as_of(text: str | None) -> AsOf:
    """Parse the value of `--as-of`: era, none or a date. Raises `UserMistake`."""
    try:
        day = AsOf.read(text)
    except ValueError as error:
        raise UserMistake(f"--as-of {error}") from error
    except OverflowError as error:
        raise UserMistake(f"--as-of {text} is not a valid date") from error
    if day.moment is not None and day.moment > datetime.now(UTC) + timedelta(days=1):
        raise UserMistake(f"--as-of {text} is in the future", hint="without --as-of the newest packages are installed")
    return day


def this_second() -> datetime:
    """Return this moment (UTC), at the end of its second: a release that was uploaded in it counts."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)


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
    pinned = [pin for text in requirements if (pin := exact_version(text)) is not None]
    if not pinned:
        raise UserMistake(
            "as-of era needs a release to take the day from", hint="pin one, such as transformers==4.53.0"
        )
    releases = [index.release(project, version) for project, version in pinned]
    uploaded = [release.uploaded for release in releases if release is not None and release.uploaded is not None]
    return max(uploaded) + ERA_MARGIN if uploaded else None
