"""Finds requirements that keep a package below its newest release and so hide what an upgrade would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from harness.errors import UnknownProject
from harness.model import normalized_name

if TYPE_CHECKING:
    from harness.environment import Index, Interpreter
    from harness.planning.world import World


def limits_of(world: World, index: Index, interpreter: Interpreter) -> tuple[str, ...]:
    """Return the requirements that exclude the newest release of the world's day; none for a world without a day.

    Raises `NoNetwork`.
    """
    found: dict[str, None] = {}
    for text in world.request.requirements if world.as_of is not None else ():
        requirement = Requirement(text)
        installed = world.lock.version_of(normalized_name(requirement.name))
        if installed is None or not requirement.specifier:
            continue
        try:
            current = Version(installed)
            newest = _newest(requirement.name, world, index, interpreter)
        except (UnknownProject, InvalidVersion):
            continue
        if newest is not None and newest > current and newest not in requirement.specifier:
            found[text] = None
    return tuple(found)


def _newest(project: str, world: World, index: Index, interpreter: Interpreter) -> Version | None:
    tags = frozenset(interpreter.wheel_tags())
    fitting = (
        release.version
        for release in index.releases(project)
        if release.left_out_because(python=interpreter.version, tags=tags) is None
        and release.uploaded is not None
        and world.as_of is not None
        and release.uploaded <= world.as_of
    )
    return max(fitting, default=None)
