"""Compares the packages that a run reports with the lock of its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.model import normalized_name

if TYPE_CHECKING:
    from harness.model import Lock, Mixture
    from harness.run.result import Ran

_TOLD = 3


def differing(lock: Lock, ran: Ran, mixture: Mixture | None) -> str:
    """Describe how the distributions that a run saw differ from the lock, "" if they don't.

    A run without a report is not compared. Distributions whose metadata a mixture exchanges are ignored, and so are
    additional ones, because a repro may extend its path.
    """
    seen = {normalized_name(name): version for name, version in ran.installed}
    if not ran.python or (not seen and "problems" in ran.machine):
        return ""
    exchanged = {path.split("/")[0] for path in mixture.files} if mixture is not None else set()
    free = {normalized_name(name.split("-")[0]) for name in exchanged if name.endswith(".dist-info")}
    differences = [
        f"{pin.name} {seen.get(pin.name) or 'missing'} instead of {pin.version}"
        for pin in lock.pins
        if pin.version and pin.name not in free and not _is_same(pin.version, seen.get(pin.name, ""))
    ]
    if not differences:
        return ""
    more = f" and {len(differences) - _TOLD} more" if len(differences) > _TOLD else ""
    return f"the run saw other packages than its lock: {', '.join(differences[:_TOLD])}{more}"


def _is_same(version: str, other: str) -> bool:
    try:
        return Version(version) == Version(other)
    except InvalidVersion:
        return version == other
