"""Replaces packages that had no wheel on a day for the Python in use.

A project that never had a compiled wheel is built from source, which takes seconds. A compiled one would take many
minutes, and an old source rarely builds with a newer Python: its first later release with a wheel is installed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.interpreter import accepted_tags
from harness.errors import UnknownProject
from harness.model import normalized_name
from harness.probe import Probe

if TYPE_CHECKING:
    from datetime import datetime

    from harness.environment import Index
    from harness.model import Combination, Release, Repro
    from harness.probe.probe import Probing
    from harness.store import StoredResolution

_NO_WHEEL = re.compile(r"no usable wheels|no wheels with a matching")
_NAMED = re.compile(
    r"Wheels are required for `([A-Za-z0-9._-]+)`|versions of ([A-Za-z0-9._-]+) have no usable wheels"
    r"|\b([A-Za-z0-9_-]+)(?:\[[^]]*\])?[=<>]=?[^\s,]+ ha(?:s|ve) no usable wheels"
    r"|only found wheels for `([A-Za-z0-9._-]+)`"
)
_MOST_PROJECTS = 12


@frozen
class WithWheels:
    """The last resolution; the releases newer than the day, by project; and the names of projects to build."""

    resolution: StoredResolution
    later: dict[str, Release]
    sources: tuple[str, ...]


def resolve_with_wheels(combination: Combination, repro: Repro, prober: Probing, index: Index) -> WithWheels:
    """Resolve a combination as of a day, with a replacement for each project that had no wheel then.

    Raises `NoNetwork`.
    """
    later: dict[str, Release] = {}
    sources: dict[str, None] = {}
    for _ in range(_MOST_PROJECTS):
        resolution = prober.resolve(Probe(repro, combination))
        if resolution.lock is not None or combination.as_of is None or not lacks_wheels(resolution.words):
            break
        new = _without_wheels(resolution.words) - later.keys() - sources.keys()
        for name in sorted(new):
            release = _first_wheel(name, combination.python, combination.as_of, index)
            if release is not None:
                later[name] = release
            else:
                sources[name] = None
        if not new:
            break
        holds = (*combination.holds, *(f"{name}=={release.version}" for name, release in later.items()))
        combination = evolve(combination, holds=holds, from_source=(*combination.from_source, *sources))
    return WithWheels(resolution, later, tuple(sources))


def lacks_wheels(words: str) -> bool:
    """Whether a resolver's message says that wheels are missing."""
    return _NO_WHEEL.search(words) is not None


def _without_wheels(words: str) -> set[str]:
    return {normalized_name(name) for found in _NAMED.findall(words) for name in found if name}


def _first_wheel(project: str, python: str, day: datetime, index: Index) -> Release | None:
    """Return the first release after a day with a wheel for a Python; None if there is none or the project is pure."""
    try:
        releases = index.releases(project)
    except UnknownProject:
        return None
    if not any(not wheel.endswith("-any.whl") for release in releases for wheel in release.wheels):
        return None
    tags = frozenset(accepted_tags(python))
    fitting = [
        release
        for release in releases
        if release.uploaded is not None
        and release.uploaded > day
        and release.left_out_because(python=python, tags=tags) is None
    ]
    return min(fitting, key=lambda release: (release.uploaded, release.version), default=None)
