"""The date of the other packages: the day of each release, one date, or none. Parsed only here."""

from __future__ import annotations

from datetime import UTC, datetime

from attrs import frozen

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
