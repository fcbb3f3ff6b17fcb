"""Parses the versions, requirements, dates and durations that users write; errors are one sentence."""

from __future__ import annotations

import re
from datetime import datetime

from packaging.version import InvalidVersion, Version

from harness.errors import UserMistake
from harness.model.lock import moment_of

_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)\Z")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 60.0}


def version_of(text: str) -> Version:
    """Parse a version, without its local label, which names a build. Raises `UserMistake`."""
    try:
        return Version(Version(text).public)
    except InvalidVersion as error:
        raise UserMistake(f"{text!r} is not a version", hint="for example 4.52.4") from error


def day(text: str, option: str, *, begins: bool = False) -> datetime:
    """Parse the date of an option as the time in UTC at which that day begins, or else ends. Raises `UserMistake`."""
    try:
        return moment_of(text, begins=begins)
    except (ValueError, OverflowError) as error:
        raise UserMistake(f"{option} takes a date such as 2025-06-27, not {text!r}") from error


def read_duration(text: str, option: str = "") -> float:
    """Return a duration in seconds. Raises `UserMistake`, which names `option`, unless it is above zero."""
    match = _WRITTEN.match(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise UserMistake(f"{option} {text!r} is not a duration".lstrip(), hint="for example 90s, 10m or 1h")
    return seconds


def duration_in_words(seconds: float) -> str:
    """Format a duration in seconds: "45 s", "10 min", "2 h"."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
