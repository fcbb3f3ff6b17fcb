"""Resolves a combination to a lock with uv's resolver, or returns the resolver's error message."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.version import Version

from harness.environment.attempt import Attempt, looser, project_of
from harness.environment.capping import Capping
from harness.environment.compiling import Compiler, Unresolvable
from harness.environment.versions import public_version
from harness.model import Combination, Lock, normalized_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.environment.index import Index
    from harness.environment.interpreter import Interpreter
    from harness.environment.uv import Uv

# The matching release of a sister package often follows within minutes.
ERA_MARGIN = timedelta(hours=1)
# torch, torchvision and torchaudio are uploaded within hours of each other.
_TOGETHER = timedelta(days=1)


@frozen
class Resolution:
    """A lock, and where it differs from the requested holds."""

    lock: Lock
    drift: tuple[str, ...] = ()


@frozen
class Resolver:
    """Gets locks from uv for one interpreter.

    A hold is kept if the other requirements allow it. It is loosened, first to the newest release below it and then
    altogether, if nothing else can be resolved, or if it pulls back a project that was requested by name: a resolver
    prefers an old release of the subject, without upper limits, to giving up a hold. To detect this, the combination is
    also resolved without its holds, if some named project is neither held nor pinned nor at the version of `near`; the
    versions found then are the oldest that these projects may get with holds. A sister package of a held one, uploaded
    within a day of it, is held back with it.
    """

    uv: Uv
    index: Index
    interpreter: Interpreter

    @property
    def _compiler(self) -> Compiler:
        return Compiler(self.uv, self.interpreter)

    @property
    def _capping(self) -> Capping:
        return Capping(self.index, self._compiler)

    def resolve(
        self, combination: Combination, near: Lock | None = None, *, cancel: threading.Event | None = None
    ) -> Resolution | Unresolvable:
        """The lock for a combination. `near` is the lock whose versions are kept where possible.

        A package held with == may be newer than the date; then the packages that it requires may be as new. Holds that
        could not be kept are reported as drift. Files without upload time get the dates that another index has for
        their release. Raises `NoNetwork` and `NoSpace`.
        """
        asked = self._capping.capped(Attempt(combination), near, cancel)
        first_words, taken_back, floors = "", "", None
        for attempt in self._attempts(asked, cancel):
            attempt = evolve(attempt, floors=floors or {})
            answer = self._compiler.lock(attempt, near, cancel)
            if isinstance(answer, Lock) and floors is None and attempt.combination.holds:
                floors, taken_back = self._floors(attempt, answer, near, cancel)
                if floors:
                    answer = self._compiler.lock(evolve(attempt, floors=floors), near, cancel)
            if isinstance(answer, Lock):
                return Resolution(answer, self._drift(combination, attempt, answer, near, taken_back))
            first_words = first_words or answer.words
        return Unresolvable(first_words)

    def _attempts(self, asked: Attempt, cancel: threading.Event | None) -> Iterator[Attempt]:
        """The request itself, then looser ones."""
        yield asked
        if not asked.combination.holds:
            return
        later = self._later(asked, cancel)
        if later:
            yield _with_later(asked, later)
        for combination in looser(asked.combination):
            yield _with_later(evolve(asked, combination=combination), later)

    def _later(self, asked: Attempt, cancel: threading.Event | None) -> dict[str, dict[str, datetime]]:
        """Later dates, by hold, for what a held release requires, if it is newer than the requested date."""
        combination = asked.combination
        later: dict[str, dict[str, datetime]] = {}
        for hold in combination.holds:
            upload = self._upload(hold)
            if combination.as_of is None or upload is None or upload <= combination.as_of:
                continue
            alone = evolve(combination, requirements=(hold,), holds=(), as_of=upload + ERA_MARGIN, near=None)
            answer = self._compiler.lock(self._capping.capped(Attempt(alone), None, cancel), None, cancel)
            if isinstance(answer, Lock):
                later[hold] = {pin.name: upload + ERA_MARGIN for pin in answer.pins}
        return later

    def _floors(
        self, attempt: Attempt, answer: Lock, near: Lock | None, cancel: threading.Event | None
    ) -> tuple[dict[str, str], str]:
        """The oldest versions that named projects may get, and a clause about what holds pulled back.

        Both are empty if the holds pulled nothing back.
        """
        combination = attempt.combination
        held = {project_of(hold) for hold in combination.holds}
        free = {project_of(text) for text in combination.requirements if "==" not in text} - held
        moved = [name for name in sorted(free) if near is None or answer.version_of(name) != near.version_of(name)]
        if not any(answer.version_of(name) for name in moved):
            return {}, ""
        without = self._compiler.lock(
            evolve(attempt, combination=evolve(combination, holds=()), later={}), near, cancel
        )
        if not isinstance(without, Lock):  # only possible with the holds: a held package may be newer than the date
            return {}, ""
        back = [name for name in moved if _is_older(answer.version_of(name), without.version_of(name))]
        sisters = {name for name in back if self._is_sister(name, answer, combination.holds)}
        floors = {
            name: Version(version).public
            for name in free - sisters
            if (version := without.version_of(name)) and answer.version_of(name)
        }
        told = [
            f"{name} down from {without.version_of(name)} to {answer.version_of(name)}"
            for name in back
            if name not in sisters
        ]
        return (floors, f"which would take {' and '.join(told)}") if told else ({}, "")

    def _is_sister(self, name: str, answer: Lock, holds: Sequence[str]) -> bool:
        """Whether a release was uploaded together with a held release."""
        release = self.index.release(name, answer.version_of(name) or "")
        if release is None or release.uploaded is None:
            return False
        uploads = [upload for hold in holds if (upload := self._upload(hold)) is not None]
        return any(abs(release.uploaded - upload) <= _TOGETHER for upload in uploads)

    def _upload(self, hold: str) -> datetime | None:
        """Upload time of the release that a hold names with ==, None if it names none."""
        requirement = Requirement(hold)
        named = [specifier.version for specifier in requirement.specifier if specifier.operator == "=="]
        release = self.index.release(requirement.name, named[0]) if named else None
        return release.uploaded if release is not None else None

    def _drift(
        self, asked: Combination, got: Attempt, lock: Lock, near: Lock | None, taken_back: str
    ) -> tuple[str, ...]:
        told = []
        for hold in map(Requirement, asked.holds):
            version = lock.version_of(normalized_name(hold.name))
            if version is not None and not hold.specifier.contains(version, prereleases=True):
                why = f", {taken_back}" if taken_back else ""
                told.append(f"{hold.name} {version} instead of the held {hold.specifier}{why}")
        if got.later:
            newest = max(got.later.values())
            told.append(
                f"the held packages allow other packages up to {newest:%Y-%m-%d}, later than the requested date"
            )
        if near is not None:
            asked_for = {project_of(requirement) for requirement in asked.requirements if "==" in requirement}
            told += [
                str(change)
                for change in near.diff(lock)
                if change.before and change.after and change.name not in asked_for
            ]
        return tuple(told)


def _with_later(attempt: Attempt, by_hold: Mapping[str, Mapping[str, datetime]]) -> Attempt:
    """The later dates of the holds that the attempt still has unchanged."""
    dates: dict[str, datetime] = {}
    for hold in attempt.combination.holds:
        dates |= by_hold.get(hold, {})
    return evolve(attempt, later=dates)


def _is_older(version: str | None, than: str | None) -> bool:
    """Whether one release is older than another; local labels do not count."""
    if version is None or than is None:
        return False
    return public_version(Version(version)) < public_version(Version(than))
