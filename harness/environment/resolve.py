"""Resolves a combination to a lock with uv's resolver, or returns the resolver's error message.

One question may take several calls of uv: each is an `Attempt`, the combination with its holds loosened, or with limits
for files without an upload time, which uv's own date limit would drop.
"""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement
from packaging.version import Version

from harness.environment.index import public_version
from harness.environment.pylock import as_preferences, read_lock, undated_in
from harness.environment.uv import Uv, spoken_by_uv
from harness.errors import UnknownProject
from harness.model import Combination, Lock, normalized_name
from harness.model.combination import ANY_SOURCE

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.environment.index import Index
    from harness.environment.interpreter import Interpreter
    from harness.model import Release

# The matching release of a sister package often follows within minutes.
ERA_MARGIN = timedelta(hours=1)
# torch, torchvision and torchaudio are uploaded within hours of each other.
_TOGETHER = timedelta(days=1)
# A chain of requirements without dates: a project, its build of torch, and what that build requires.
_TURNS = 4
_PAGES_AT_ONCE = 8  # index pages are slow, so fetch several at once
# What uv takes from PyTorch's own index if a backend is named (uv: "Using uv with PyTorch", automatic backend
# selection), and what these packages require from there.
_OF_A_TORCH_BACKEND = re.compile(r"torch|torch(audio|vision|text|data)|(pytorch-)?triton(-.*)?|nvidia-.*")


@frozen
class Resolution:
    """A lock, and where it differs from the requested holds."""

    lock: Lock
    drift: tuple[str, ...] = ()


@frozen
class Unresolvable:
    """Why no set of releases meets the requirements, in the resolver's words."""

    words: str


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

    def resolve(
        self, combination: Combination, near: Lock | None = None, *, cancel: threading.Event | None = None
    ) -> Resolution | Unresolvable:
        """The lock for a combination. `near` is the lock whose versions are kept where possible.

        A package held with == may be newer than the date; then the packages that it requires may be as new. Holds that
        could not be kept are reported as drift. Files without upload time get the dates that another index has for
        their release. Raises `NoNetwork` and `NoSpace`.
        """
        asked = self._capped(Attempt(combination), near, cancel)
        first_words, taken_back, floors = "", "", None
        for attempt in self._attempts(asked, cancel):
            attempt = evolve(attempt, floors=floors or {})
            answer = self._lock(attempt, near, cancel)
            if isinstance(answer, Lock) and floors is None and attempt.combination.holds:
                floors, taken_back = self._floors(attempt, answer, near, cancel)
                if floors:
                    answer = self._lock(evolve(attempt, floors=floors), near, cancel)
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
            answer = self._lock(self._capped(Attempt(alone), None, cancel), None, cancel)
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
        without = self._lock(evolve(attempt, combination=evolve(combination, holds=()), later={}), near, cancel)
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

    def _capped(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Attempt:
        """The attempt with caps for the projects that uv's date limit can't be applied to.

        If several indexes are configured, uv also resolves without a date: its answer says which files have an upload
        time. Capping one project may add others, so this repeats.
        """
        combination = attempt.combination
        as_of = combination.as_of
        if as_of is None:
            return attempt
        kept = {pin.name for pin in near.pins} if near is not None else set()
        undated = self.index.projects_without_dates(kept)
        pinned = {project_of(text) for text in combination.requirements if "==" in text}
        is_backed = self.uv.has_torch_backend
        if not is_backed and not self.index.is_of_several:
            return evolve(attempt, undated=undated, caps=caps(undated - pinned, self.index, as_of))
        named = frozenset(project_of(text) for text in (*combination.requirements, *combination.holds))
        found = frozenset(name for name in named if self.index.lacks_dates(name))
        found |= of_a_torch_backend(named) if is_backed else frozenset()
        for _ in range(_TURNS):
            undated |= found
            attempt = evolve(attempt, undated=undated, caps=caps(undated - pinned, self.index, as_of))
            chosen, found = self._chosen_today(attempt, near, cancel)
            found |= of_a_torch_backend(chosen) if is_backed else frozenset()
            if found <= undated:
                break
        return attempt

    def _chosen_today(
        self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The projects that uv would choose without a date, and those of them whose file has no upload time."""
        combination = attempt.combination
        for holds in dict.fromkeys((combination.holds, ())):
            today = evolve(attempt, combination=evolve(combination, holds=holds), ignores_dates=True)
            answer = self._pylock(today, near, cancel)
            if not isinstance(answer, Unresolvable):
                return frozenset(pin.name for pin in read_lock(answer, self.interpreter).pins), undated_in(answer)
        return frozenset(), frozenset()

    def _lock(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Lock | Unresolvable:
        """uv's answer to an attempt. Raises `NoNetwork` and `NoSpace`."""
        answer = self._pylock(attempt, near, cancel)
        return answer if isinstance(answer, Unresolvable) else read_lock(answer, self.interpreter)

    def _pylock(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> str | Unresolvable:
        """The text of the lock file that uv writes for an attempt; the versions of `near` are kept where possible."""
        with tempfile.TemporaryDirectory(prefix="harness-resolve-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text("\n".join(attempt.combination.requirements) + "\n", encoding="utf-8")
            (here / "constraints.txt").write_text("\n".join(attempt.constraints) + "\n", encoding="utf-8")
            output = here / "pylock.toml"
            if near is not None:
                output.write_text(as_preferences(near), encoding="utf-8")
            answer = self.uv.call(*self._arguments(attempt), cwd=here, cancel=cancel)
            if answer.returncode != 0:
                return Unresolvable(spoken_by_uv(answer.words) or f"uv ended with code {answer.returncode}")
            return output.read_text(encoding="utf-8")

    def _arguments(self, attempt: Attempt) -> list[str | Path]:
        from_source = attempt.combination.from_source
        return [
            *("--quiet", "pip", "compile", "requirements.in", "--constraints", "constraints.txt"),
            *("--python", self.interpreter.path, "--format", "pylock.toml", "--output-file", "pylock.toml"),
            *([] if ANY_SOURCE in from_source else ["--only-binary", ":all:"]),
            *(["--no-deps"] if attempt.combination.only_named else []),
            *attempt.options,
        ]


@frozen
class Attempt:
    """What to request from uv.

    `later` maps some projects to later dates; `floors` are the oldest versions that projects may get; `undated` are
    projects to which uv's own date limit can't be applied, and `caps` the constraints that replace it; with
    `ignores_dates` only the caps limit what uv may choose.
    """

    combination: Combination
    later: Mapping[str, datetime] = field(factory=dict)
    floors: Mapping[str, str] = field(factory=dict)
    undated: frozenset[str] = frozenset()
    caps: tuple[str, ...] = ()
    ignores_dates: bool = False

    @property
    def constraints(self) -> list[str]:
        """Constraint lines."""
        floors = [f"{project}>={version}" for project, version in sorted(self.floors.items())]
        held = _held_at_a_release(self.combination.holds)
        return [*self.combination.holds, *floors, *(cap for cap in self.caps if project_of(cap) not in held)]

    @property
    def options(self) -> Iterator[str]:
        """Options that limit what uv may choose from."""
        combination = self.combination
        for project in combination.from_source:
            if project != ANY_SOURCE:
                yield from ("--no-binary", project)
        if combination.as_of is not None and not self.ignores_dates:
            yield from ("--exclude-newer", combination.as_of.isoformat())
            dates = {project: date.isoformat() for project, date in self.later.items()}
            dates |= dict.fromkeys(self.undated | _held_at_a_release(combination.holds), "false")
            for project, date in sorted(dates.items()):
                yield from ("--exclude-newer-package", f"{project}={date}")
        for project in combination.prereleases:
            yield from ("--prerelease-package", f"{project}=allow")


def looser(combination: Combination) -> Iterator[Combination]:
    """The combination with looser holds: first to older releases, one hold alone and then all, then without holds."""
    holds = combination.holds
    below = tuple(hold.replace("==", "<=") for hold in holds)
    for instead in (below, ("",) * len(holds)):
        if len(holds) > 1:  # one hold: "one alone" and "all" are the same
            for i in range(len(holds)):
                yield evolve(combination, holds=tuple(h for h in (*holds[:i], instead[i], *holds[i + 1 :]) if h))
        yield evolve(combination, holds=tuple(filter(None, instead)))


def project_of(requirement: str) -> str:
    """The normalised name of the project that a requirement is for."""
    return normalized_name(Requirement(requirement).name)


def _held_at_a_release(holds: Sequence[str]) -> frozenset[str]:
    """Projects that are held at one release, whatever its upload time. A range names no release."""
    return frozenset(project_of(hold) for hold in holds if "==" in hold or "<=" in hold)


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


def of_a_torch_backend(projects: Collection[str]) -> frozenset[str]:
    """The projects that come from an index without upload times if a torch backend is set."""
    return frozenset(name for name in projects if _OF_A_TORCH_BACKEND.fullmatch(name))


def caps(projects: Collection[str], index: Index, as_of: datetime) -> tuple[str, ...]:
    """Constraints that limit each project to what existed on a day, by the dates that any index has.

    A project without any date is not limited. Raises `NoNetwork`.
    """

    def of_one(project: str) -> tuple[str, ...]:
        try:
            return tuple(_caps(project, index.releases(project), as_of))
        except UnknownProject:
            return ()

    with ThreadPoolExecutor(_PAGES_AT_ONCE, thread_name_prefix="pages") as pool:
        return tuple(cap for found in pool.map(of_one, sorted(projects)) for cap in found)


def _caps(project: str, releases: Collection[Release], as_of: datetime) -> Iterator[str]:
    there = [release.version for release in releases if release.uploaded and release.uploaded <= as_of]
    newest = max((version for version in there if not version.is_prerelease), default=None)
    if newest is not None:
        # A version without a date counts as newer if its number is higher.
        yield f"{project}<={newest}"
    for release in releases:
        if release.uploaded and release.uploaded > as_of and (newest is None or release.version < newest):
            yield f"{project}!={release.version}"
