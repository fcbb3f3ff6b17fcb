"""A combination: the requested interpreter, requirements, date and device."""

from __future__ import annotations

import enum
import hashlib
import json
from datetime import UTC, datetime

from attrs import field, frozen

ANY_SOURCE, NO_SOURCE = ":all:", ":none:"  # in place of a project's name


class Device(enum.StrEnum):
    """Where a repro runs."""

    CPU = "cpu"
    CUDA = "cuda"
    EMULATED = "emulated"


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


@frozen
class Combination:
    """One point of the search space: what is resolved, and for which device.

    `requirements` are PEP 508 strings in the user's order: if several solutions exist, the resolver prefers the newest
    release of the first. `holds` are requirements that are kept if possible; `near` is the id of a lock whose versions
    are kept if possible (None: the newest); `as_of` limits upload times (None: today's index); `prereleases` and
    `from_source` name projects (`ANY_SOURCE`: any without a wheel, `NO_SOURCE`: none); with `only_named` only the named
    requirements are installed, without their dependencies.
    """

    python: str
    requirements: tuple[str, ...] = field(converter=_unique)
    holds: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    as_of: datetime | None = None
    near: str | None = None
    device: Device = Device.CPU
    prereleases: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    from_source: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    only_named: bool = False

    @property
    def resolution_key(self) -> str:
        """Identifies the resolver's question: everything but the device."""
        question = [
            self.python,
            self.requirements,
            self.holds,
            self.as_of.isoformat() if self.as_of else None,
            self.near,
            self.prereleases,
            self.from_source,
            *(["only named"] if self.only_named else []),
        ]
        return hashlib.sha256(json.dumps(question).encode()).hexdigest()[:16]


ERA, NONE = "era", "none"


@frozen
class AsOf:
    """The day of each release (`is_era`), one `moment` (UTC), or neither: the newest packages."""

    moment: datetime | None = None
    is_era: bool = False
    text: str = NONE

    @classmethod
    def read(cls, text: str | None) -> AsOf:
        """Parse "era", "none" (or no text), or an ISO 8601 date. Raises `ValueError` with a message for users."""
        if text is None or text == NONE:
            return cls()
        if text == ERA:
            return cls(is_era=True, text=ERA)
        try:
            return cls(moment_of(text), text=text)
        except ValueError as error:
            raise ValueError(f"takes era, none or a date like 2025-06-27, not {text!r}") from error

    def of(self, era: datetime | None) -> datetime | None:
        """The date for a release of the day `era`; None means the newest packages."""
        return era if self.is_era else self.moment

    def __str__(self) -> str:
        return self.text


def moment_of(text: str) -> datetime:
    """Parse an ISO 8601 date or time and convert it to UTC, the default time zone. Raises `ValueError`."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
