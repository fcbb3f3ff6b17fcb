"""Makes the worlds of a question's ends (days, files, Pythons, releases), and those before the bad one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.version import Version

from harness.environment.interpreter import accepted_tags
from harness.environment.pylock import is_source
from harness.errors import UnknownProject, UserMistake
from harness.model import normalized_name
from harness.model.text import one_line
from harness.planning.inquiry import Scope
from harness.planning.releases import check_ends, era_of
from harness.planning.world import World, end_words, name_of, prereleases_of
from harness.probing import Probe
from harness.request.commands import unpinned
from harness.request.ends import End, EndKind, Ends, day_end
from harness.request.lockfiles import installed_pins, read_pins

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from harness.environment import Index, Interpreter
    from harness.environment.uv import Uv
    from harness.model import Combination, Lock, Release, Repro
    from harness.probing.probe import Probing
    from harness.request.lockfiles import Pins
    from harness.store import StoredResolution

_WORDS = 400
_STEPS_BACK = 10  # in powers of two weeks: the last step is ten years before the bad end


@frozen
class Worlds:
    """Makes worlds of ends. `newest` is the day whose packages are used if the ends are only releases."""

    scope: Scope
    prober: Probing
    index: Index
    interpreter: Interpreter
    subject: str
    newest: End

    def of(self, end: End) -> World:
        """Make the world of a day, a file or a Python. Raises `UserMistake`."""
        if end.kind is EndKind.DAY:
            return day_world(end, self.scope, self.prober, self.index)
        if end.path is None:
            raise UserMistake(f"{end.text} is not a day, a lock file or a Python")
        is_python = end.kind is EndKind.PYTHON
        pins = installed_pins(end.path) if is_python else read_pins(end.path, self.scope.python)
        world = pinned_world(end, pins, self.scope, self.prober, self.index, self.interpreter)
        ours = self.interpreter.minor
        if pins.python and not pins.python.startswith(ours):
            told = f"{end.text} has Python {pins.python}; it runs with {self.interpreter.version} (--python changes it)"
            world = evolve(world, told=(*world.told, told))
        return world

    def both(self, ends: Ends) -> tuple[World | None, World]:
        """Make the worlds of the good and the bad end; the good one is None if it was not given.

        A release is the world of the other end with the subject at that release; two releases use the newest packages.
        Raises `UserMistake` and `UnknownRelease`.
        """
        good, bad = ends.good, ends.bad
        if bad.kind is EndKind.RELEASE:
            other = self.of(good if good is not None and good.kind is not EndKind.RELEASE else self.newest)
            world = self._at(bad, other)
            return (other if good is not None and other.end is good else self._older(good, world)), world
        world = self.of(bad)
        return self._older(good, world), world

    def required(self) -> tuple[Worlds, World] | None:
        """Make the world of the exact versions that a repro requires, on the day of the newest of them.

        Also returns what makes the worlds before it, in which these versions are free. None without exact versions.
        Raises `UserMistake` if they can't be installed together.
        """
        requirements = self.scope.requirements
        loose = tuple(map(unpinned, requirements))
        if self.scope.repro.argv or loose == requirements:
            return None
        exact = [text for text, free in zip(requirements, loose, strict=True) if text != free]
        moment = era_of(exact, self.index)
        if moment is None:
            return None
        resolution = self.prober.resolve(Probe(self.scope.repro, self.scope.combination(requirements, moment)))
        lock = resolution.lock
        if lock is None:
            words = one_line(resolution.words, _WORDS)
            raise UserMistake(
                f"the repro's own versions can't be installed ({', '.join(exact)}): {words}",
                hint="take a version out of its dependencies, or name the ends with --good and --bad",
            )
        free = evolve(self, scope=evolve(self.scope, requirements=loose))
        told = f"bad end: what the repro requires: {', '.join(exact)} (--bad changes it)"
        end, prereleases = day_end(moment), prereleases_of(lock)
        return free, World(end, free.scope, lock, loose, moment, lock, (told,), prereleases)

    def before(self, bad: World) -> Iterator[tuple[str, World]]:
        """Yield worlds before the bad one, further and further back, each with its name.

        They are of older releases or of earlier days. Raises `UserMistake` if the bad end has no day.
        """
        if bad.end.kind is EndKind.RELEASE:
            yield from self._releases_before(bad)
            return
        if bad.as_of is None:
            raise UserMistake("the good end is missing", hint="--good DAY, FILE or PYTHON says where it worked")
        for step in range(_STEPS_BACK):
            end = day_end(bad.as_of - timedelta(weeks=2**step))
            try:
                yield f"as of {end.text}, {2**step} weeks before", self.of(end)
            except UserMistake:
                return

    def _older(self, good: End | None, bad: World) -> World | None:
        if good is None:
            return None
        return self._at(good, bad) if good.kind is EndKind.RELEASE else self.of(good)

    def _at(self, end: End, other: World) -> World:
        check_ends(self.index, self.subject, [end.text])
        return release_world(end, other, self.subject, self.prober, self.index)

    def _releases_before(self, bad: World) -> Iterator[tuple[str, World]]:
        """Yield the worlds one, two, four ... releases back, without releases that can't be installed with the rest."""
        tags = frozenset(self.interpreter.wheel_tags())
        older = [
            str(release.version)
            for release in self.index.releases(self.subject)
            if release.version < Version(bad.end.text)
            and release.left_out_because(python=self.interpreter.version, tags=tags) is None
        ]
        positions = dict.fromkeys(min(2**step, len(older)) for step in range(len(older).bit_length() + 1) if older)
        for position in positions:
            try:
                world = self._at(End(EndKind.RELEASE, older[-position]), bad)
            except UserMistake:
                continue
            yield f"{self.subject} {older[-position]}", world


def day_world(end: End, scope: Scope, prober: Probing, index: Index) -> World:
    """Resolve the packages of a day. Raises `UserMistake` if there is no solution."""
    found = resolve_with_wheels(scope.combination(scope.requirements, end.moment), scope.repro, prober, index)
    resolution = found.resolution
    if resolution.lock is not None and (found.later or found.sources):
        lock = resolution.lock
        built = {pin.name: pin.version for pin in lock.pins if is_source(pin.wheel)}
        newer = [f"{name} {release.version}" for name, release in found.later.items() if lock.version_of(name)]
        told = [
            f"{end.text}: no wheel for Python {scope.python} yet, {what}: {', '.join(names)}"
            for what, names in (
                ("built from source", [f"{name} {version}" for name, version in built.items()]),
                ("so the first release with one is used", newer),
            )
            if names
        ]
        holds = (*scope.holds, *(f"{name}=={release.version}" for name, release in found.later.items()))
        kept = evolve(scope, holds=holds)
        return World(end, kept, lock, scope.requirements, end.moment, told=tuple(told), sources=built)
    if resolution.lock is None:
        _refuse_early_day(end, scope, index)
        words, moment = resolution.words, end.moment
        hint = (
            "choose a later day, change a requirement with --with, or allow building from source with --build PROJECT"
        )
        if lacks_wheels(words) and moment is not None:
            hint = python_hint(words, moment, index, prober.builder.uv) or hint
        raise UserMistake(f"nothing can be installed as of {end.text}: {one_line(words, _WORDS)}", hint=hint)
    return World(end, scope, resolution.lock, scope.requirements, end.moment)


def _refuse_early_day(end: End, scope: Scope, index: Index) -> None:
    """Raise `UserMistake` if a required project did not exist yet."""
    for text in scope.requirements:
        dates = [release.uploaded for release in index.releases(Requirement(text).name) if release.uploaded is not None]
        if dates and end.moment is not None and min(dates) > end.moment:
            raise UserMistake(
                f"{name_of(text)} did not exist on {end.text}: its first release was on {min(dates):%Y-%m-%d}",
                hint="choose a later day",
            )


def pinned_world(end: End, pins: Pins, scope: Scope, prober: Probing, index: Index, interpreter: Interpreter) -> World:
    """Make the world of the packages that a file or an environment lists.

    Releases that the index has no file of are replaced or left out. Raises `UserMistake` if it can't be installed.
    """
    told = list(pins.told)
    requirements = pins.requirements
    if not pins.is_exact:
        return _loose_world(end, pins, scope, prober)
    named = {name_of(text) for text in requirements}
    exact = evolve(scope.combination(requirements, None), only_named=True, holds=())
    resolution = prober.resolve(Probe(scope.repro, exact))
    if resolution.lock is None:
        requirements, more = _that_can_be_had(requirements, index, interpreter, scope.from_source)
        told += more
        exact = evolve(scope.combination(requirements, None), only_named=True, holds=())
        resolution = prober.resolve(Probe(scope.repro, exact))
    lock = resolution.lock
    if lock is None:
        raise UserMistake(f"{end.text} can't be installed again: {resolution.words}")
    missing = [text for text in scope.requirements if name_of(text) not in named]
    if missing:
        lock = _with_missing(lock, missing, scope, prober)
        told.append(f"{end.text} has no {', '.join(map(name_of, missing))}: installed as well")
    return World(end, scope, lock, tuple(pin.name for pin in lock.pins), None, lock, tuple(told), prereleases_of(lock))


def release_world(end: End, other: World, subject: str, prober: Probing, index: Index) -> World:
    """Put the subject of the other end's world at a release. Raises `UserMistake` if that can't be installed."""
    probe = other.at({subject: end.text}, other.scope.repro)
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


def _loose_world(end: End, pins: Pins, scope: Scope, prober: Probing) -> World:
    """Make the world of a requirements file without exact versions: what the resolver chooses for it today."""
    named = {name_of(text) for text in pins.requirements}
    requirements = (*pins.requirements, *(text for text in scope.requirements if name_of(text) not in named))
    resolution = prober.resolve(Probe(scope.repro, scope.combination(requirements, None)))
    if resolution.lock is None:
        raise UserMistake(f"{end.text} can't be installed: {resolution.words}")
    lock = resolution.lock
    return World(end, scope, lock, requirements, None, lock, pins.told, prereleases_of(lock))


def _with_missing(lock: Lock, missing: Sequence[str], scope: Scope, prober: Probing) -> Lock:
    """Return the lock with further requirements, as new as its other packages allow."""
    beside = scope.combination(missing, None, lock)
    resolution = prober.resolve(Probe(scope.repro, beside, lock))
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


_KNOWN = tuple(f"3.{minor}" for minor in range(8, 15))
_WANTED_WHEELS = re.compile(r"Wheels are required for `([A-Za-z0-9._-]+)`")


def python_hint(words: str, moment: datetime, index: Index, uv: Uv) -> str:
    """Say which Pythons have wheels on a day and today for the projects in a resolver's message; "" if none has.

    Raises `NoNetwork`.
    """
    projects = sorted(set(_WANTED_WHEELS.findall(words)))
    moments = (moment, datetime.now(UTC))
    fitting = [python for python in _KNOWN if all(_has_wheels(name, python, moments, index) for name in projects)]
    return _fitting_words(fitting if projects else [], uv)


def python_hint_for_release(project: str, version: str, index: Index, uv: Uv) -> str:
    """Say which Pythons have wheels for a release and the newest one; "" if none has.

    Raises `NoNetwork` and `UnknownProject`.
    """
    old, newest = index.release(project, version), index.releases(project)[-1:]
    return _fitting_words(
        [python for python in _KNOWN if old and all(_fits(one, python) for one in (old, *newest))], uv
    )


def _fitting_words(fitting: list[str], uv: Uv) -> str:
    if not fitting:
        return ""
    here = [python for python in fitting if _is_here(python, uv)]
    told = f"Python {' and '.join(fitting)} would work for both ends"
    return f"{told}; this machine has {' and '.join(here)} (--python {here[-1]})" if here else f"{told}, none is here"


def _fits(release: Release, python: str) -> bool:
    return release.left_out_because(python=f"{python}.0", tags=frozenset(accepted_tags(python))) is None


def _has_wheels(project: str, python: str, moments: Collection[datetime], index: Index) -> bool:
    try:
        fitting = [
            release.uploaded
            for release in index.releases(project)
            if release.uploaded is not None and _fits(release, python)
        ]
    except UnknownProject:
        return False
    return all(any(uploaded <= moment for uploaded in fitting) for moment in moments)


def _is_here(python: str, uv: Uv) -> bool:
    try:
        uv.find_python(python)
    except UserMistake:
        return False
    return True
