"""Resolves a combination to a lock with uv's resolver, or returns the resolver's error message.

One question may take several calls of uv: each is an `Attempt`, the combination without some of its holds, or with
limits for files without an upload time, which uv's own date limit would drop.
"""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement
from packaging.version import Version

from harness.environment.attempt import (
    Attempt,
    as_preferences,
    caps,
    is_source,
    lacks_wheels,
    may_be_built,
    of_a_torch_backend,
    projects_without_wheels,
    read_lock,
    undated_in,
)
from harness.environment.dates import ERA_MARGIN
from harness.environment.index import at_once
from harness.environment.source_builds import CANT_BUILD, BuiltWheel, NotBuilt, SourceBuilds, without_requirements
from harness.environment.uv import Uv, spoken_by_uv
from harness.model import Combination, Lock, Pin, name_of, normalized_name, parsed_version
from harness.model.lock import NO_SOURCE
from harness.model.requirements import exact_version
from harness.search import fewest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.environment.index import Index
    from harness.environment.interpreter import Interpreter


# torch, torchvision and torchaudio are uploaded within hours of each other.
_TOGETHER = timedelta(days=1)
# A chain of requirements without dates: a project, its build of torch, and what that build requires.
_TURNS = 4


@frozen
class Resolution:
    """A lock, and where it differs from the requested holds; or why no set of releases meets the requirements.

    That is in the resolver's `words`. It does not last if a build failed: a compiler may be installed. `pages` is the
    state of the index that it depends on (`Index.state`), "" for the packages of a day that is over.
    """

    lock: Lock | None = None
    drift: tuple[str, ...] = ()
    words: str = ""
    lasts: bool = True
    pages: str = ""


@frozen
class Resolver:
    """Gets locks from uv for one interpreter.

    A hold is kept if the other requirements allow it; the fewest with which nothing can be resolved are left out. One
    that pulls back a project that was requested by name counts as such: a resolver prefers an old release of the
    subject, without upper limits, to giving up a hold. To detect this, the combination is also resolved without its
    holds, if some named project is neither held nor pinned nor at the version of `near`; the versions found then are
    the oldest that these projects may get with holds. A sister package, uploaded within a day of a held one, may be
    held back with it.

    `read` are the projects of the locks that uv made with the network, whose pages in its cache are those of this
    session: a later lock of these alone can be made from the cache, which takes a tenth of the time.
    """

    index: Index
    builds: SourceBuilds
    read: set[str] = field(factory=set, eq=False, repr=False)

    @property
    def uv(self) -> Uv:
        """What resolves."""
        return self.builds.uv

    @property
    def interpreter(self) -> Interpreter:
        """What the locks are for."""
        return self.builds.interpreter

    def resolve(self, combination: Combination, near: Lock | None = None, *, refresh: bool = False) -> Resolution:
        """The lock for a combination. `near` is the lock whose versions are kept where possible.

        A package held with == may be newer than the date; then the packages that it requires may be as new. Holds that
        could not be kept are reported as drift. Files without upload time get the dates that another index has for
        their release. With `refresh` uv asks the index whether the pages that it has cached are still so. Raises
        `NoNetwork` and `NoSpace`.
        """
        return _Question(self.index, self.builds, self.read, near, refresh).answer(combination)


@frozen
class _Question(Resolver):
    """One question to a resolver, whose versions in `near` are kept where possible.

    `unbuilt` has a sentence for each project that is older than it should be, because that can't be built.
    """

    near: Lock | None = None
    refresh: bool = False
    unbuilt: dict[str, str] = field(factory=dict)

    def answer(self, combination: Combination) -> Resolution:
        """The lock for a request, without the fewest holds with which there is none; or why there is none at all."""
        requested = self.capped(Attempt(combination))
        first = self.lock(requested)
        floors = self._floors(requested, first)
        back = _pulled_back(first, floors)
        if not combination.holds or (isinstance(first, Lock) and not back):
            return self._resolution(combination, requested, first)
        later = self._later(requested)
        tried: dict[tuple[str, ...], tuple[Attempt, Lock | Resolution]] = {}

        def has_lock(lifted: Collection[str]) -> bool:
            holds = tuple(hold for hold in combination.holds if hold not in lifted)
            attempt = evolve(requested, combination=evolve(combination, holds=holds), floors=floors)
            attempt = self._with_later(attempt, later)
            tried[holds] = attempt, self.lock(attempt)
            return isinstance(tried[holds][1], Lock)

        lifted = fewest(combination.holds, has_lock)
        if lifted is None:
            return self._resolution(combination, requested, first)
        holds = tuple(hold for hold in combination.holds if hold not in lifted)
        return self._resolution(combination, *tried[holds], f", which would take {' and '.join(back)}" if back else "")

    def _resolution(
        self, combination: Combination, attempt: Attempt, answer: Lock | Resolution, why: str = ""
    ) -> Resolution:
        if isinstance(answer, Resolution):
            return answer
        return Resolution(answer, (*self.unbuilt.values(), *self._drift(combination, attempt, answer, why)))

    def _with_later(self, attempt: Attempt, by_hold: Mapping[str, Mapping[str, datetime]]) -> Attempt:
        """The attempt with the later dates of its holds, also for the projects whose dates are caps."""
        later: dict[str, datetime] = {}
        for hold in attempt.combination.holds:
            later |= by_hold.get(hold, {})
        limits = [cap for cap in attempt.caps if name_of(cap) not in later]
        for name in sorted(later.keys() & {name_of(cap) for cap in attempt.caps}):
            limits += caps([name], self.index, later[name])
        return evolve(attempt, later=later, caps=tuple(limits))

    def _later(self, attempt: Attempt) -> dict[str, dict[str, datetime]]:
        """Later dates, by hold, for what a held release requires, if it is newer than the requested date."""
        combination = attempt.combination
        without_near = evolve(self, near=None, unbuilt={})
        later: dict[str, dict[str, datetime]] = {}
        for hold in combination.holds:
            upload = self._upload(hold)
            if combination.as_of is None or upload is None or upload <= combination.as_of:
                continue
            alone = evolve(combination, requirements=(hold,), holds=(), as_of=upload + ERA_MARGIN, near=None)
            answer = without_near.lock(without_near.capped(Attempt(alone)))
            if isinstance(answer, Lock):
                later[hold] = {pin.name: upload + ERA_MARGIN for pin in answer.pins}
        return later

    def _floors(self, attempt: Attempt, answer: Lock | Resolution) -> dict[str, str]:
        """The oldest versions that named projects may get: those without holds, or of the day of a held release.

        Empty if there are no holds, or if all these projects are where `near` has them.
        """
        combination, near = attempt.combination, self.near
        held = set(map(name_of, combination.holds))
        free = {name_of(text) for text in combination.requirements if "==" not in text} - held
        if isinstance(answer, Lock):
            moved = [name for name in free if near is None or answer.version_of(name) != near.version_of(name)]
            if not any(answer.version_of(name) for name in moved):
                return {}
        if not held or not free:
            return {}
        bare = evolve(self, unbuilt={}).lock(evolve(attempt, combination=evolve(combination, holds=()), later={}))
        if not isinstance(bare, Lock):  # only possible with the holds: a held package may be newer than the date
            return {}
        uploads = [upload for hold in combination.holds if (upload := self._upload(hold)) is not None]
        versions = {name: version for name in sorted(free) if (version := bare.version_of(name))}
        return {name: self._floor(name, Version(version), uploads) for name, version in versions.items()}

    def _floor(self, name: str, newest: Version, uploads: Sequence[datetime]) -> str:
        """The oldest version that a project may get: the newest, or one that was uploaded together with a held one."""
        together = [
            release.version
            for release in self.index.known_releases(name)
            if release.uploaded and any(abs(release.uploaded - upload) <= _TOGETHER for upload in uploads)
        ]
        return min([newest, *together]).public

    def _upload(self, hold: str) -> datetime | None:
        """Upload time of the release that a hold names with ==, None if it names none."""
        named = exact_version(hold)
        release = self.index.known_release(*named) if named else None
        return release.uploaded if release is not None else None

    def _drift(self, combination: Combination, attempt: Attempt, lock: Lock, why: str) -> tuple[str, ...]:
        notes = []
        for hold in map(Requirement, combination.holds):
            version = lock.version_of(normalized_name(hold.name))
            if version is not None and not hold.specifier.contains(version, prereleases=True):
                notes.append(f"{hold.name} {version} instead of the held {hold.specifier}{why}")
        if attempt.later:
            newest = max(attempt.later.values())
            notes.append(
                f"the held packages allow other packages up to {newest:%Y-%m-%d}, later than the requested date"
            )
        if self.near is not None:
            notes += [
                str(change)
                for change in self.near.diff(lock)
                if change.before and change.after and change.name not in attempt.pinned
            ]
        return tuple(notes)

    def capped(self, attempt: Attempt) -> Attempt:
        """The attempt with caps for the projects that uv's date limit can't be applied to.

        If several indexes are configured, uv also resolves without a date: its answer says which files have an upload
        time. Capping one project may add others, so this repeats.
        """
        combination = attempt.combination
        if combination.as_of is None:
            return attempt
        preferred = {pin.name for pin in self.near.pins} if self.near is not None else set()
        attempt = self._without_dates(attempt, self.index.projects_without_dates(preferred))
        is_backed = self.uv.has_torch_backend
        if not is_backed and not self.index.is_of_several:
            return attempt
        named = frozenset(name_of(text) for text in (*combination.requirements, *combination.holds))
        undated = frozenset(name for name in named if self.index.lacks_dates(name))
        undated |= of_a_torch_backend(named) if is_backed else frozenset()
        for _ in range(_TURNS):
            attempt = self._without_dates(attempt, undated)
            chosen, undated = self._chosen_today(attempt)
            undated |= of_a_torch_backend(chosen) if is_backed else frozenset()
            if undated <= attempt.undated:
                break
        return attempt

    def _without_dates(self, attempt: Attempt, projects: Collection[str]) -> Attempt:
        """The attempt with caps in place of the date for these projects, too."""
        as_of, added = attempt.combination.as_of, frozenset(projects) - attempt.undated
        if as_of is None or not added:
            return attempt
        limits = (*attempt.caps, *caps(added - attempt.pinned, self.index, as_of))
        return evolve(attempt, undated=attempt.undated | added, caps=limits)

    def _chosen_today(self, attempt: Attempt) -> tuple[frozenset[str], frozenset[str]]:
        """The projects that uv would choose without a date, and those of them whose file has no upload time."""
        combination = attempt.combination
        for holds in dict.fromkeys((combination.holds, ())):
            today = evolve(attempt, combination=evolve(combination, holds=holds), ignores_dates=True)
            answer = self._pylock(today)
            if not isinstance(answer, Resolution):
                return frozenset(pin.name for pin in read_lock(answer, self.interpreter).pins), undated_in(answer)
        return frozenset(), frozenset()

    def lock(self, attempt: Attempt) -> Lock | Resolution:
        """uv's answer to an attempt. Raises `NoNetwork` and `NoSpace`."""
        answer = self._pylock(attempt)
        if isinstance(answer, Resolution):
            return answer
        lock = read_lock(answer, self.interpreter)
        return evolve(lock, pins=self.builds.as_sources(lock.pins))

    def _pylock(self, attempt: Attempt) -> str | Resolution:
        """The text of the lock file that uv writes for an attempt.

        Where wheels are missing, those of the projects that may be built are built, and uv is asked again: if there is
        no solution, or none with the releases that were the newest on the day.
        """
        wheels = self._built_for(attempt.combination)
        while True:
            answer = self._answer(self._offered(attempt, wheels))
            if not isinstance(answer, Resolution):
                newer = self._newer_of_the_day(attempt, wheels, answer)
                if not newer:
                    return answer
                wheels = {**wheels, **newer}
                continue
            if not lacks_wheels(answer.words):
                return answer
            built = self._missing_wheels(attempt, wheels, answer.words)
            failed = [
                f"{wheel.release} has no usable wheels and {CANT_BUILD}: {wheel.words}"
                for wheel in built.values()
                if isinstance(wheel, NotBuilt)
            ]
            if failed:
                return Resolution(words="; ".join(failed), lasts=False)
            new = {name: wheel for name, wheel in built.items() if isinstance(wheel, BuiltWheel)}
            if not new or new.items() <= wheels.items():
                return answer
            wheels = {**wheels, **new}

    def _built_for(self, combination: Combination) -> dict[str, BuiltWheel]:
        """The built wheels of the releases that `near` has: without them another version would be chosen."""
        if self.near is None:
            return {}
        pins = [pin for pin in self.near.pins if is_source(pin.wheel)]
        if NO_SOURCE in combination.from_source:
            pins = [pin for pin in pins if may_be_built(pin.name, combination)]
        built = {pin.name: self.builds.of(pin) for pin in pins}
        return {name: wheel for name, wheel in built.items() if isinstance(wheel, BuiltWheel)}

    def _offered(self, attempt: Attempt, wheels: Mapping[str, BuiltWheel]) -> Attempt:
        """The attempt with these wheels to choose from; they have no upload time."""
        links = tuple(wheel.path.parent for wheel in wheels.values())
        return evolve(self._without_dates(attempt, wheels), links=links)

    def _missing_wheels(
        self, attempt: Attempt, wheels: Mapping[str, BuiltWheel], words: str
    ) -> dict[str, BuiltWheel | NotBuilt]:
        """Build what uv's message says has no wheel, as far as it may be built; empty if that would not help."""
        combination = attempt.combination
        pinned = dict(filter(None, map(exact_version, combination.requirements)))
        names: set[str] = set()
        while True:
            new = {name for name in projects_without_wheels(words) if may_be_built(name, combination)} - names
            if combination.only_named:  # each is pinned, and uv names one at a time
                sdist_only = itertools.compress(pinned, at_once(self._has_no_wheel, pinned, pinned.values()))
                new |= {name for name in sdist_only if may_be_built(name, combination)} - names
            new -= {name for name, wheel in wheels.items() if pinned.get(name) in (None, wheel.source.version)}
            if not new:
                return {}
            names |= new
            answer = self._answer(evolve(self._offered(attempt, wheels), sources=tuple(sorted(names))))
            if not isinstance(answer, Resolution):
                break
            words = answer.words
        sources = self.builds.sources_in(answer)
        return {name: self.builds.build(source) for name, source in sources.items() if name in names}

    def _newer_of_the_day(
        self, attempt: Attempt, wheels: Mapping[str, BuiltWheel], answer: str
    ) -> dict[str, BuiltWheel]:
        """Build what uv passed over only for its lack of a wheel; puts what can't be built into `unbuilt`."""
        combination = attempt.combination
        if combination.as_of is None or self.near is not None or attempt.ignores_dates:
            return {}
        lock = read_lock(answer, self.interpreter)
        decided = attempt.pinned | wheels.keys() | self.unbuilt.keys()
        buildable = [pin for pin in lock.pins if may_be_built(pin.name, combination) and pin.name not in decided]
        passed_over = at_once(lambda pin: self._was_passed_over(pin, combination), buildable)
        names = tuple(pin.name for pin in itertools.compress(buildable, passed_over))
        if not names:
            return {}
        newest = self._answer(evolve(self._offered(attempt, wheels), sources=names))
        if isinstance(newest, Resolution):
            return {}
        built: dict[str, BuiltWheel] = {}
        for name, source in self.builds.sources_in(newest).items():
            wanted = source.pin.version
            if name not in names or wanted == lock.version_of(name) or not self._has_no_wheel(name, wanted):
                continue
            wheel = self.builds.build(source)
            if isinstance(wheel, BuiltWheel):
                built[name] = wheel
            else:
                instead = f"{name} {lock.version_of(name)} instead of {wanted}"
                self.unbuilt[name] = f"{instead}, which {CANT_BUILD}: {wheel.words}"
        return built

    def _was_passed_over(self, pin: Pin, combination: Combination) -> bool:
        """Whether a release without a wheel may have been preferred to this one on the day."""
        chosen = parsed_version(pin.version)
        if chosen is None:
            return False
        target, day = self.interpreter.target, combination.as_of
        sources = [
            release.version
            for release in self.index.known_releases(pin.name)
            if release.left_out_because(target, build_from_source=True) is None
            and not release.has_wheel_for(target)
            and release.uploaded is not None
            and day is not None
            and release.uploaded <= day
        ]
        is_odd = chosen.is_prerelease and pin.name not in combination.prereleases
        return any(is_odd or version > chosen for version in sources)

    def _has_no_wheel(self, project: str, version: str) -> bool:
        """Whether a release has only a source distribution for this interpreter."""
        release = self.index.known_release(project, version)
        return release is not None and release.has_sdist and not release.has_wheel_for(self.interpreter.target)

    def _answer(self, attempt: Attempt) -> str | Resolution:
        compiled = partial(
            self.uv.compile,
            attempt.combination.requirements,
            *attempt.options,
            *self.uv.offering(attempt.links),
            *(("--refresh",) if self.refresh else ()),
            python=self.interpreter.path,
            constraints=attempt.constraints,
            preferences=as_preferences(self.near) if self.near is not None and self.near.pins else "",
            settings=without_requirements(attempt.sources),
        )
        if self.read and not self.refresh:
            answer, lock = compiled(from_cache=True)
            if answer.returncode == 0 and self.read.issuperset(self._projects(lock)):
                return lock
        answer, lock = compiled()
        if answer.returncode != 0:
            return Resolution(words=spoken_by_uv(answer.words) or f"uv ended with code {answer.returncode}")
        self.read.update(self._projects(lock))
        return lock

    def _projects(self, lock: str) -> set[str]:
        return {pin.name for pin in read_lock(lock, self.interpreter).pins}


def _pulled_back(answer: Lock | Resolution, floors: Mapping[str, str]) -> list[str]:
    """Clauses about the projects that are older than they may be."""
    if not isinstance(answer, Lock):
        return []
    versions = {name: version for name in floors if (version := answer.version_of(name))}
    return [
        f"{name} down from {floors[name]} to {version}"
        for name, version in versions.items()
        if Version(Version(version).public) < Version(floors[name])
    ]
