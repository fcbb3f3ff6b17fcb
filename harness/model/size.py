"""Converts sizes such as "8 GiB" to bytes and back."""

from __future__ import annotations

import math
import re

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(rf"\s*([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(_UNITS)})\s*")


def parse_size(text: str) -> int | None:
    """Parse a size such as "8 GiB" or "20GB" into bytes, None if it is not one."""
    match = _SIZE.fullmatch(text)
    size = float(match.group(1)) * _UNITS[match.group(2)] if match else math.inf
    return int(size) if math.isfinite(size) else None


def size_in_words(count: float) -> str:
    """A number of bytes with a unit and at least two digits ("1.2 GiB", "740 MiB")."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < 1023.5:  # 1023.9 KiB would be rounded to 1024 KiB
            break
        count /= 1024
        unit = larger
    return f"{count:.0f} {unit}" if unit == "B" or count >= 9.95 else f"{count:.1f} {unit}"
