"""A world: the packages of one end of a question. It makes probes with some of them at other versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from harness.environment.pylock import is_source
from harness.errors import UserMistake
from harness.model import Combination, Device, Lock, Release, Repro, normalized_name
from harness.model.text import one_line
from harness.planning.common_python import python_hint, python_hint_for_release
from harness.planning.first_wheels import lacks_wheels, resolve_with_wheels
from harness.probe import Probe
from harness.request.ends import End, EndKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from harness.environment import Index, Interpreter
    from harness.probe.probe import Probing
    from harness.request.lockfiles import Pins

Versions = Mapping[str, str | None]
_WORDS = 400


@frozen
class WorldRequest:
    """What all worlds of a question share: requirements, holds, a device, and what may be built from source."""

    repro: Repro
    python: str
    requirements: tuple[str, ...]
    holds: tuple[str, ...] = ()
    device: Device = Device.CPU
    from_source: tuple[str, ...] = ()

    def combination(self, requirements: Iterable[str], as_of: datetime | None, near: Lock | None = None) -> Combination:
        """Return the combination of these requirements at a time, on the device of the question."""
        return Combination(
            python=self.python,
            requirements=tuple(requirements),
            holds=self.holds,
            as_of=as_of,
            near=near.id if near is not None else None,
            device=self.device,
            from_source=self.from_source,
        )


@frozen
class World:
    """One end with its lock.

    A changed world is resolved from `requirements` and `as_of`. `near` is the lock whose versions are then kept if
    possible; None for a day, which uses its newest. `told` are sentences about replaced packages. `sources` are
    versions that may be built from source, by project.
    """

    end: End
    request: WorldRequest
    lock: Lock
    requirements: tuple[str, ...]
    as_of: datetime | None = None
    near: Lock | None = None
    told: tuple[str, ...] = ()
    prereleases: tuple[str, ...] = ()
    sources: Versions = field(factory=dict)

    def itself(self, repro: Repro | None = None) -> Probe:
        """Return the probe of this world unchanged."""
        return Probe(
            repro or self.request.repro, self.request.combination(self.requirements, self.as_of), lock=self.lock
        )

    def with_versions(self, versions: Versions, repro: Repro) -> Probe:
        """Return the probe of this world with some packages at other versions; None removes a package.

        Packages that conflict with these versions change too; all others keep their versions if possible.
        """
        pinned = {name: version for name, version in versions.items() if version is not None}
        named = [text for text in self.requirements if _name(text) not in versions or _name(text) in pinned]
        beside = pinned.keys() - set(map(_name, named))
        requirements = [_pin(text, pinned) if _name(text) in pinned else text for text in named]
        requirements += [f"{name}=={pinned[name]}" for name in pinned if name in beside]
        combination = self.request.combination(requirements, self.as_of, self.near)
        prereleases = {name for name, version in pinned.items() if _is_prerelease(version)}
        # A release that this end had to build may be built again, unless it is pinned to another version.
        sources = [name for name, version in self.sources.items() if pinned.get(name, version) == version]
        combination = evolve(
            combination,
            prereleases=tuple({*self.prereleases, *prereleases}),
            from_source=(*self.request.from_source, *sources),
        )
        return Probe(repro, combination, self.near)

    def near_versions(self, versions: Versions, kept: Versions, repro: Repro, prober: Probing) -> Probe:
        """Return the probe with some packages at other versions, and those in `kept` if they can be resolved together.

        Else one of those in `kept` is left out, or all of them.
        """
        rest = {name: version for name, version in kept.items() if name not in versions}
        probe = self.with_versions({**rest, **versions}, repro)
        for left_out in (*([name] for name in rest), list(rest)) if rest else ():
            if prober.resolve(probe).lock is not None:
                break
            fewer = {name: version for name, version in rest.items() if name not in left_out}
            probe = self.with_versions({**fewer, **versions}, repro)
        return probe

    def constrained(self, constraints: Sequence[str], repro: Repro) -> Probe:
        """Return the probe of this world with additional constraints."""
        probe = self.with_versions({}, repro)
        requirements = (*probe.combination.requirements, *constraints)
        return evolve(probe, combination=evolve(probe.combination, requirements=requirements))


def day_world(end: End, request: WorldRequest, prober: Probing, index: Index) -> World:
    """Resolve the packages of a day. Raises `UserMistake` if there is no solution."""
    found = resolve_with_wheels(request.combination(request.requirements, end.moment), request.repro, prober, index)
    resolution = found.resolution
    if resolution.lock is not None and (found.later or found.sources):
        lock = resolution.lock
        built = {pin.name: pin.version for pin in lock.pins if is_source(pin.wheel)}
        newer = [f"{name} {release.version}" for name, release in found.later.items() if lock.version_of(name)]
        told = [
            f"{end.text}: no wheel for Python {request.python} yet, {what}: {', '.join(names)}"
            for what, names in (
                ("built from source", [f"{name} {version}" for name, version in built.items()]),
                ("so the first release with one is used", newer),
            )
            if names
        ]
        holds = (*request.holds, *(f"{name}=={release.version}" for name, release in found.later.items()))
        kept = evolve(request, holds=holds)
        return World(end, kept, lock, request.requirements, end.moment, told=tuple(told), sources=built)
    if resolution.lock is None:
        _refuse_early_day(end, request, index)
        words, moment = resolution.words, end.moment
        hint = (
            "choose a later day, change a requirement with --with, or allow building from source with --build PROJECT"
        )
        if lacks_wheels(words) and moment is not None:
            hint = python_hint(words, moment, index, prober.builder.uv) or hint
        raise UserMistake(f"nothing can be installed as of {end.text}: {one_line(words, _WORDS)}", hint=hint)
    return World(end, request, resolution.lock, request.requirements, end.moment)


def _refuse_early_day(end: End, request: WorldRequest, index: Index) -> None:
    """Raise `UserMistake` if a required project did not exist yet."""
    for text in request.requirements:
        dates = [release.uploaded for release in index.releases(Requirement(text).name) if release.uploaded is not None]
        if dates and end.moment is not None and min(dates) > end.moment:
            raise UserMistake(
                f"{_name(text)} did not exist on {end.text}: its first release was on {min(dates):%Y-%m-%d}",
                hint="choose a later day",
            )


def pinned_world(
    end: End, pins: Pins, request: WorldRequest, prober: Probing, index: Index, interpreter: Interpreter
) -> World:
    """Make the world of the packages that a file or an environment lists.

    Releases that the index has no file of are replaced or left out. Raises `UserMistake` if it can't be installed.
    """
    told = list(pins.told)
    requirements = pins.requirements
    if not pins.is_exact:
        return _loose_world(end, pins, request, prober)
    named = {_name(text) for text in requirements}
    exact = evolve(request.combination(requirements, None), only_named=True, holds=())
    resolution = prober.resolve(Probe(request.repro, exact))
    if resolution.lock is None:
        requirements, more = _that_can_be_had(requirements, index, interpreter, request.from_source)
        told += more
        exact = evolve(request.combination(requirements, None), only_named=True, holds=())
        resolution = prober.resolve(Probe(request.repro, exact))
    lock = resolution.lock
    if lock is None:
        raise UserMistake(f"{end.text} can't be installed again: {resolution.words}")
    missing = [text for text in request.requirements if _name(text) not in named]
    if missing:
        lock = _with_missing(lock, missing, request, prober)
        told.append(f"{end.text} has no {', '.join(map(_name, missing))}: installed as well")
    return World(end, request, lock, tuple(pin.name for pin in lock.pins), None, lock, tuple(told), _prereleases(lock))


def release_world(end: End, other: World, subject: str, prober: Probing, index: Index) -> World:
    """Put the subject of the other end's world at a release. Raises `UserMistake` if that can't be installed."""
    probe = other.with_versions({subject: end.text}, other.request.repro)
    resolution = prober.resolve(probe)
    if resolution.lock is None:
        hint = "name another release, or let other packages be older with --as-of DAY"
        if lacks_wheels(resolution.words):
            hint = python_hint_for_release(subject, end.text, index, prober.builder.uv) or hint
        raise UserMistake(
            f"{subject} {end.text} can't be installed {end_words(other.end)}: {one_line(resolution.words, _WORDS)}",
            hint=hint,
        )
    return evolve(other, end=end, lock=resolution.lock, near=resolution.lock, told=())


def _loose_world(end: End, pins: Pins, request: WorldRequest, prober: Probing) -> World:
    """Make the world of a requirements file without exact versions: what the resolver chooses for it today."""
    named = {_name(text) for text in pins.requirements}
    requirements = (*pins.requirements, *(text for text in request.requirements if _name(text) not in named))
    resolution = prober.resolve(Probe(request.repro, request.combination(requirements, None)))
    if resolution.lock is None:
        raise UserMistake(f"{end.text} can't be installed: {resolution.words}")
    lock = resolution.lock
    return World(end, request, lock, requirements, None, lock, pins.told, _prereleases(lock))


def _with_missing(lock: Lock, missing: Sequence[str], request: WorldRequest, prober: Probing) -> Lock:
    """Return the lock with further requirements, as new as its other packages allow."""
    beside = request.combination(missing, None, lock)
    resolution = prober.resolve(Probe(request.repro, beside, lock))
    if resolution.lock is None:
        raise UserMistake(f"{', '.join(missing)} can't be installed as well: {resolution.words}")
    there = {pin.name for pin in lock.pins}
    return evolve(lock, pins=(*lock.pins, *(pin for pin in resolution.lock.pins if pin.name not in there)))


def _that_can_be_had(
    requirements: Iterable[str], index: Index, interpreter: Interpreter, from_source: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return each pin, replaced by the nearest older release if the index has no file for this machine, and notes.

    A project without any usable file is left out.
    """
    from harness.errors import UnknownProject

    tags = frozenset(interpreter.wheel_tags())
    kept, told = [], []
    for text in requirements:
        requirement = Requirement(text)
        wanted = next((spec.version for spec in requirement.specifier if spec.operator == "=="), "")
        try:
            releases = index.releases(requirement.name)
        except UnknownProject:
            told.append(f"{requirement.name} is not on the index: left out")
            continue

        def fits(release: Release, name: str = requirement.name) -> bool:
            why = release.left_out_because(
                python=interpreter.version, tags=tags, prereleases=True, build_from_source=name in from_source
            )
            return why is None or why.startswith("yanked")

        exact = index.release(requirement.name, wanted)
        if exact is not None and fits(exact):
            kept.append(text if "+" not in wanted else f"{requirement.name}=={Version(wanted).public}")
            continue
        below = [release for release in releases if fits(release) and release.version <= Version(wanted)]
        if not below:
            told.append(f"{requirement.name} {wanted} has no file for this machine: left out")
            continue
        kept.append(f"{requirement.name}=={below[-1].version}")
        told.append(f"{requirement.name} {wanted} has no file for this machine: replaced by {below[-1].version}")
    return tuple(kept), told


def end_words(end: End) -> str:
    """Return an end as part of a sentence."""
    return {EndKind.DAY: f"as of {end.text}", EndKind.RELEASE: end.text}.get(end.kind, f"with {end.text}")


def _pin(text: str, pinned: Mapping[str, str]) -> str:
    """Return a requirement at its pinned version, with its extras."""
    requirement = Requirement(text)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}=={pinned[_name(text)]}"


def _name(text: str) -> str:
    return normalized_name(Requirement(text).name)


def _prereleases(lock: Lock) -> tuple[str, ...]:
    return tuple(pin.name for pin in lock.pins if _is_prerelease(pin.version))


def _is_prerelease(version: str) -> bool:
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False
