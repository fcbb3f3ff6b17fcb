"""JSON as in RFC 8259: no NaN, no infinities, and text that every encoding can write."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Any, *, indent: int | None = 1) -> str:
    """Return a value as JSON. NaN and infinities become null, because JSON has none."""
    return json.dumps(finite(value), indent=indent, allow_nan=False)


def finite(value: Any) -> Any:
    """Replace NaN and infinities with None, and lone surrogates with U+FFFD."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {finite(key) if isinstance(key, str) else key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
