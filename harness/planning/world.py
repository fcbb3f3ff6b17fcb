"""A world: the packages of one end of a question. It is the one place that makes probes with some of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from harness.errors import UnknownProject
from harness.model import Lock, Repro, normalized_name
from harness.planning.inquiry import Scope
from harness.probing import Probe
from harness.request.ends import End, EndKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from harness.environment import Index, Interpreter
    from harness.probing.probe import Probing

Versions = Mapping[str, str | None]


@frozen
class World:
    """One end with its lock.

    A changed world is resolved from `requirements` and `as_of`. `near` is the lock whose versions are then kept if
    possible; None for a day, which uses its newest. `told` are sentences about how it was made, `changed` those of them
    about packages that differ from what the end says. `sources` are projects that an end had to build: their other
    releases may be built too, or no search could tell which of those between the ends is the first bad one. `inside` is
    the interpreter of an existing environment that is the end, to run it as it is. `until` is the day of these
    packages, if it is known: the day of the end, or the upload of the newest package that a file lists.
    """

    end: End
    scope: Scope
    lock: Lock
    requirements: tuple[str, ...]
    as_of: datetime | None = None
    near: Lock | None = None
    told: tuple[str, ...] = ()
    prereleases: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()
    inside: Path | None = None
    until: datetime | None = None

    def itself(self, repro: Repro | None = None) -> Probe:
        """Return the probe of this world unchanged."""
        combination = self.scope.combination(self.requirements, self.as_of)
        return Probe(repro or self.scope.repro, combination, lock=self.lock, inside=self.inside)

    def at(self, versions: Versions, repro: Repro) -> Probe:
        """Return the probe of this world with some packages at other versions; None removes a package.

        Packages that conflict with these versions change too; all others keep their versions if possible.
        """
        pinned = {name: version for name, version in versions.items() if version is not None}
        named = [text for text in self.requirements if name_of(text) not in versions or name_of(text) in pinned]
        beside = pinned.keys() - set(map(name_of, named))
        requirements = [_pin(text, pinned) if name_of(text) in pinned else text for text in named]
        requirements += [f"{name}=={pinned[name]}" for name in pinned if name in beside]
        combination = self.scope.combination(requirements, self.as_of, self.near)
        prereleases = {name for name, version in pinned.items() if _is_prerelease(version)}
        combination = evolve(
            combination,
            prereleases=tuple({*self.prereleases, *prereleases}),
            from_source=(*self.scope.from_source, *self.sources),
        )
        return Probe(repro, combination, self.near)

    def near_versions(self, versions: Versions, kept: Versions, repro: Repro, prober: Probing) -> Probe:
        """Return the probe with some packages at other versions, and those in `kept` if they can be resolved together.

        Else one of those in `kept` is left out, or all of them.
        """
        rest = {name: version for name, version in kept.items() if name not in versions}
        probe = self.at({**rest, **versions}, repro)
        for left_out in (*([name] for name in rest), list(rest)) if rest else ():
            if prober.resolve(probe).lock is not None:
                break
            fewer = {name: version for name, version in rest.items() if name not in left_out}
            probe = self.at({**fewer, **versions}, repro)
        return probe

    def constrained(self, constraints: Sequence[str], repro: Repro) -> Probe:
        """Return the probe of this world with additional constraints."""
        probe = self.at({}, repro)
        requirements = (*probe.combination.requirements, *constraints)
        return evolve(probe, combination=evolve(probe.combination, requirements=requirements))


def end_words(end: End) -> str:
    """Return an end as part of a sentence."""
    return {EndKind.DAY: f"as of {end.text}", EndKind.RELEASE: end.text}.get(end.kind, f"with {end.text}")


def limits_of(world: World, index: Index, interpreter: Interpreter) -> tuple[str, ...]:
    """Return the requirements that exclude the newest release of the world's day; none for a world without a day.

    Raises `NoNetwork`.
    """
    found: dict[str, None] = {}
    for text in world.scope.requirements if world.as_of is not None else ():
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


def _pin(text: str, pinned: Mapping[str, str]) -> str:
    """Return a requirement at its pinned version, with its extras."""
    return f"{unbounded(text)}=={pinned[name_of(text)]}"


def name_of(text: str) -> str:
    """Return the normalised name of the project that a requirement names."""
    return normalized_name(Requirement(text).name)


def unbounded(text: str) -> str:
    """Return a requirement with its extras and without its versions."""
    requirement = Requirement(text)
    return requirement.name + (f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else "")


def prereleases_of(lock: Lock) -> tuple[str, ...]:
    """Return the names of the packages that a lock has at a pre-release."""
    return tuple(pin.name for pin in lock.pins if _is_prerelease(pin.version))


def _is_prerelease(version: str) -> bool:
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False
