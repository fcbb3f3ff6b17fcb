"""From a combination to a lock, by uv's resolver; what can't be resolved is told in the resolver's own words."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement

from harness.environment.pylock import as_preferences, read_lock
from harness.environment.uv import Uv, spoken_by_uv
from harness.errors import UnknownProject
from harness.model import Combination, Lock, normalized_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.environment.index import Index
    from harness.environment.interpreter import Interpreter

# A release is often followed within minutes by the sister that belongs to it.
ERA_MARGIN = timedelta(hours=1)


@frozen
class Resolution:
    """A lock, and in what it departs from what was asked to be held."""

    lock: Lock
    drift: tuple[str, ...] = ()


@frozen
class Unresolvable:
    """Why no set of releases meets the requirements, in the resolver's own words."""

    words: str


@frozen
class _Attempt:
    """What uv is asked: a combination, with later dates for some projects."""

    combination: Combination
    later: Mapping[str, datetime] = field(factory=dict)


@frozen
class Resolver:
    """Asks uv for locks for one interpreter."""

    uv: Uv
    index: Index
    interpreter: Interpreter

    def resolve(
        self, combination: Combination, near: Lock | None = None, *, cancel: threading.Event | None = None
    ) -> Resolution | Unresolvable:
        """The lock for a combination. `near` is the lock whose versions are kept where possible.

        What is held with == may be newer than the date, and may bring companions of its own day. A hold that the
        rest does not allow is loosened to the newest release below it, then dropped; each is told as drift.
        Raises `NoNetwork` and `NoSpace`.
        """
        first_words = ""
        for attempt in self._attempts(combination, cancel):
            answer = self._compile(attempt, near, cancel)
            if isinstance(answer, Lock):
                return Resolution(answer, self._drift(combination, attempt, answer, near))
            first_words = first_words or answer.words
        return Unresolvable(first_words)

    def _attempts(self, combination: Combination, cancel: threading.Event | None) -> Iterator[_Attempt]:
        """The combination itself, then ever looser ones."""
        yield _Attempt(combination)
        if not combination.holds:
            return
        if later := self._later(combination, cancel):
            yield _Attempt(combination, later)
        below = tuple(hold.replace("==", "<=") for hold in combination.holds)
        for instead in (below, ("",) * len(combination.holds)):
            for loosened in _one_by_one(combination.holds, instead):
                yield _Attempt(evolve(combination, holds=loosened), later)
            yield _Attempt(evolve(combination, holds=tuple(filter(None, instead))))

    def _later(self, combination: Combination, cancel: threading.Event | None) -> dict[str, datetime]:
        """Dates for what a held release brings along, where that release is newer than the date asked for."""
        later: dict[str, datetime] = {}
        for hold in combination.holds:
            upload = self._upload(hold)
            if combination.as_of is None or upload is None or upload <= combination.as_of:
                continue
            alone = evolve(combination, requirements=(hold,), holds=(), as_of=upload + ERA_MARGIN, near=None)
            answer = self._compile(_Attempt(alone), None, cancel)
            if isinstance(answer, Lock):
                later.update({pin.name: upload + ERA_MARGIN for pin in answer.pins})
        return later

    def _compile(self, attempt: _Attempt, near: Lock | None, cancel: threading.Event | None) -> Lock | Unresolvable:
        combination = attempt.combination
        with tempfile.TemporaryDirectory(prefix="harness-resolve-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text("\n".join(combination.requirements) + "\n", encoding="utf-8")
            undated = self._undated(combination, near)
            constraints = [*combination.holds, *self._dated_constraints(combination, undated)]
            (here / "constraints.txt").write_text("\n".join(constraints) + "\n", encoding="utf-8")
            output = here / "pylock.toml"
            if near is not None:
                output.write_text(as_preferences(near), encoding="utf-8")
            answer = self.uv.call(*self._arguments(attempt, undated), cwd=here, cancel=cancel)
            if answer.returncode != 0:
                return Unresolvable(spoken_by_uv(answer.words))
            return read_lock(output, self.interpreter)

    def _undated(self, combination: Combination, near: Lock | None) -> frozenset[str]:
        """Projects that uv's cap by date can't be left to."""
        if combination.as_of is None:
            return frozenset()
        kept = {pin.name for pin in near.pins} if near is not None else set()
        return self.index.projects_without_dates(kept)

    def _arguments(self, attempt: _Attempt, undated: frozenset[str]) -> list[str | Path]:
        combination = attempt.combination
        arguments: list[str | Path] = [
            "--quiet",
            "pip",
            "compile",
            "requirements.in",
            "--constraints",
            "constraints.txt",
        ]
        arguments += ["--python", self.interpreter.path, "--only-binary", ":all:"]
        arguments += ["--format", "pylock.toml", "--output-file", "pylock.toml"]
        for project in combination.from_source:
            arguments += ["--no-binary", project]
        if combination.as_of is not None:
            arguments += ["--exclude-newer", combination.as_of.isoformat()]
            dates = {project: date.isoformat() for project, date in attempt.later.items()}
            dates |= dict.fromkeys(undated | _dateless(combination.holds), "false")
            for project, date in sorted(dates.items()):
                arguments += ["--exclude-newer-package", f"{project}={date}"]
        for project in combination.prereleases:
            arguments += ["--prerelease-package", f"{project}=allow"]
        return arguments

    def _dated_constraints(self, combination: Combination, undated: frozenset[str]) -> Iterator[str]:
        """Caps by date for projects that are exempt from uv's own."""
        held = {_name(hold) for hold in combination.holds}
        for project in sorted(undated - held):
            try:
                releases = self.index.releases(project)
            except UnknownProject:
                continue
            for release in releases:
                if combination.as_of and release.uploaded and release.uploaded > combination.as_of:
                    yield f"{project}!={release.version}"

    def _upload(self, hold: str) -> datetime | None:
        """When the release that a hold names with == was uploaded, None where it names none."""
        requirement = Requirement(hold)
        named = [specifier.version for specifier in requirement.specifier if specifier.operator == "=="]
        release = self.index.release(requirement.name, named[0]) if named else None
        return release.uploaded if release is not None else None

    def _drift(self, asked: Combination, got: _Attempt, lock: Lock, near: Lock | None) -> tuple[str, ...]:
        told = []
        for hold in map(Requirement, asked.holds):
            version = lock.version_of(normalized_name(hold.name))
            if version is not None and not hold.specifier.contains(version, prereleases=True):
                told.append(f"{hold.name} {version} instead of the held {hold.specifier}")
        if got.later:
            newest = max(got.later.values())
            told.append(f"what is held brings companions as of {newest:%Y-%m-%d}, later than the date asked for")
        if near is not None:
            asked_for = {_name(requirement) for requirement in asked.requirements if "==" in requirement}
            told += [
                str(change)
                for change in near.diff(lock)
                if change.before and change.after and change.name not in asked_for
            ]
        return tuple(told)


def _dateless(holds: Sequence[str]) -> frozenset[str]:
    """Projects that are held at a release, whenever that was uploaded; a range has no release to hold at."""
    return frozenset(_name(hold) for hold in holds if "==" in hold or "<=" in hold)


def _name(requirement: str) -> str:
    return normalized_name(Requirement(requirement).name)


def _one_by_one(holds: Sequence[str], instead: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each variant with one hold replaced; nothing where there is only one, which the caller tries anyway."""
    if len(holds) < 2:
        return
    for i in range(len(holds)):
        yield tuple(h for h in (*holds[:i], instead[i], *holds[i + 1 :]) if h)
