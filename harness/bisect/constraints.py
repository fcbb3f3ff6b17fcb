"""Constraints in words that runs have shown: what to write into a file until the culprit is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from harness.bisect.boundary import Boundary


def constraint_of(boundary: Boundary) -> str:
    """The loosest constraint that keeps a package on the passing side: `numpy<2`, `pandas<=2.1.4`."""
    name = boundary.package
    if boundary.first_bad is None:  # the package is no longer there at the bad end
        return f"{name}=={boundary.last_good}"
    if boundary.last_good is None:
        return ""
    older, newer = _version(boundary.last_good), _version(boundary.first_bad)
    if older is None or newer is None:
        return f"{name}=={boundary.last_good}"
    if older > newer:  # it went back to an older release
        return f"{name}>={boundary.last_good}"
    if not boundary.is_certain:
        return f"{name}<={boundary.last_good}"
    return f"{name}<{_shortest(older, newer)}"


def _shortest(older: Version, newer: Version) -> str:
    """The newer version without zeros at its end, as long as the older one stays below: 2.0.0 is 2."""
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
