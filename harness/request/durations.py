"""Durations as users write them: 90s, 10m, 1.5h; a bare number is minutes."""

from __future__ import annotations

import re

from harness.errors import UserMistake

_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)\Z")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 60.0}


def read_duration(text: str, option: str = "") -> float:
    """Return a duration in seconds. Raises `UserMistake`, which names `option`, unless it is above zero."""
    found = _WRITTEN.match(text.strip().lower())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if seconds <= 0:
        raise UserMistake(f"{option} {text!r} is not a duration".lstrip(), hint="write for example 90s, 10m or 1h")
    return seconds


def told_duration(seconds: float) -> str:
    """Format a duration in seconds: "45 s", "10 min", "2 h"."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
