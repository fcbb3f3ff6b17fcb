"""From a combination to a lock, by uv's resolver; what can't be resolved is told in the resolver's own words."""

from __future__ import annotations

import tempfile
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.environment.uv import Uv, spoken_by_uv
from harness.errors import UnknownProject
from harness.model import Combination, Lock, Pin, normalized_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from packaging.tags import Tag

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
class Resolver:
    """Asks uv for locks for one interpreter."""

    uv: Uv
    index: Index
    interpreter: Interpreter

    def resolve(
        self, combination: Combination, near: Lock | None = None, *, cancel: threading.Event | None = None
    ) -> Resolution | Unresolvable:
        """The lock for a combination. `near` is the lock whose versions are kept where possible.

        A hold that the rest does not allow is loosened: to the newest release below it, to a later date, then
        dropped; each is told as drift. Raises `NoNetwork` and `NoSpace`.
        """
        first_words = ""
        for attempt in self._attempts(combination):
            answer = self._compile(attempt, near, cancel)
            if isinstance(answer, Lock):
                return Resolution(answer, self._drift(combination, attempt, answer, near))
            first_words = first_words or answer.words
        return Unresolvable(first_words)

    def _attempts(self, combination: Combination) -> Iterator[Combination]:
        """The combination itself, then ever looser ones."""
        yield combination
        if not combination.holds:
            return
        held_until = self._newest_upload(combination.holds)
        as_of = combination.as_of
        if as_of is not None and held_until is not None and held_until > as_of:
            as_of = held_until + ERA_MARGIN
            yield evolve(combination, as_of=as_of)
        below = tuple(hold.replace("==", "<=") for hold in combination.holds)
        for loosened in _one_by_one(combination.holds, below):
            yield evolve(combination, holds=loosened)
        yield evolve(combination, holds=below)
        for loosened in _one_by_one(combination.holds, ("",) * len(combination.holds)):
            yield evolve(combination, holds=loosened)
        yield evolve(combination, holds=())

    def _compile(
        self, combination: Combination, near: Lock | None, cancel: threading.Event | None
    ) -> Lock | Unresolvable:
        with tempfile.TemporaryDirectory(prefix="harness-resolve-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text("\n".join(combination.requirements) + "\n", encoding="utf-8")
            constraints = [*combination.holds, *self._dated_constraints(combination)]
            (here / "constraints.txt").write_text("\n".join(constraints) + "\n", encoding="utf-8")
            output = here / "pylock.toml"
            if near is not None:
                output.write_text(_as_preferences(near), encoding="utf-8")
            answer = self.uv.call(*self._arguments(combination), cwd=here, cancel=cancel)
            if answer.returncode != 0:
                return Unresolvable(spoken_by_uv(answer.words))
            return self._read_lock(output)

    def _arguments(self, combination: Combination) -> list[str | Path]:
        arguments: list[str | Path] = [
            "--quiet",
            "pip",
            "compile",
            "requirements.in",
            "--constraints",
            "constraints.txt",
        ]
        arguments += [
            "--python",
            self.interpreter.path,
            "--format",
            "pylock.toml",
            "--output-file",
            "pylock.toml",
        ]
        arguments += ["--only-binary", ":all:"]
        for project in combination.from_source:
            arguments += ["--no-binary", project]
        if combination.as_of is not None:
            arguments += ["--exclude-newer", combination.as_of.isoformat()]
            exempt = self.index.projects_without_dates() | {_name(hold) for hold in combination.holds}
            for project in sorted(exempt):
                arguments += ["--exclude-newer-package", f"{project}=false"]
        for project in combination.prereleases:
            arguments += ["--prerelease-package", f"{project}=allow"]
        return arguments

    def _dated_constraints(self, combination: Combination) -> Iterator[str]:
        """Caps by date for projects that are exempt from uv's own cap because a folder has undated wheels of them."""
        if combination.as_of is None:
            return
        held = {_name(hold) for hold in combination.holds}
        for project in sorted(self.index.projects_without_dates() - held):
            try:
                releases = self.index.releases(project)
            except UnknownProject:
                continue
            for release in releases:
                if release.uploaded is not None and release.uploaded > combination.as_of:
                    yield f"{project}!={release.version}"

    def _newest_upload(self, holds: Sequence[str]) -> datetime | None:
        stamps = []
        for hold in map(Requirement, holds):
            for specifier in hold.specifier:
                release = self.index.release(hold.name, specifier.version) if specifier.operator == "==" else None
                if release is not None and release.uploaded is not None:
                    stamps.append(release.uploaded)
        return max(stamps, default=None)

    def _read_lock(self, path: Path) -> Lock:
        tags = self.interpreter.wheel_tags()
        packages = tomllib.loads(path.read_text(encoding="utf-8")).get("packages", [])
        return Lock(
            python=self.interpreter.version,
            platform=self.interpreter.platform,
            pins=[_pin(package, tags) for package in packages],
        )

    def _drift(self, asked: Combination, got: Combination, lock: Lock, near: Lock | None) -> tuple[str, ...]:
        told = []
        for hold in map(Requirement, asked.holds):
            version = lock.version_of(normalized_name(hold.name))
            if version is not None and not hold.specifier.contains(version, prereleases=True):
                told.append(f"{hold.name} {version} instead of the held {hold.specifier}")
        if got.as_of != asked.as_of and got.as_of is not None:
            told.append(f"companions as of {got.as_of:%Y-%m-%d}, since what is held is newer than the date asked for")
        if near is not None:
            asked_for = {_name(requirement) for requirement in asked.requirements if "==" in requirement}
            told += [
                str(change)
                for change in near.diff(lock)
                if change.before and change.after and change.name not in asked_for
            ]
        return tuple(told)


def _name(requirement: str) -> str:
    return normalized_name(Requirement(requirement).name)


def _one_by_one(holds: Sequence[str], instead: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each variant with one hold replaced; nothing where there is only one, which the caller tries anyway."""
    if len(holds) < 2:
        return
    for i in range(len(holds)):
        yield tuple(h for h in (*holds[:i], instead[i], *holds[i + 1 :]) if h)


def _as_preferences(lock: Lock) -> str:
    """A lock file without files: uv reads the versions of an output file that exists as preferences."""
    packages = "".join(f'\n[[packages]]\nname = "{pin.name}"\nversion = "{pin.version}"\n' for pin in lock.pins)
    return f'lock-version = "1.0"\ncreated-by = "harness"\n{packages}'


def _pin(package: dict[str, object], tags: Sequence[Tag]) -> Pin:
    """The one file of a locked package that the installer will take: the wheel with the best tag, else the source."""
    wheels = package.get("wheels") or ()
    best = (
        min(wheels, key=lambda wheel: _rank(_file_name(wheel), tags), default=None)
        if isinstance(wheels, list)
        else None
    )
    chosen = best or package.get("sdist") or package.get("archive") or {}
    hashes = chosen.get("hashes", {}) if isinstance(chosen, dict) else {}
    return Pin(
        name=normalized_name(str(package["name"])),
        version=str(package.get("version", "")),
        wheel=_file_name(chosen) if chosen else "",
        sha256=str(hashes.get("sha256", "")),
        size=chosen.get("size") if isinstance(chosen, dict) else None,
    )


def _file_name(file: object) -> str:
    if not isinstance(file, dict):
        return ""
    where = str(file.get("name") or file.get("path") or file.get("url") or "")
    return unquote(urlsplit(where).path).rpartition("/")[2]


def _rank(wheel: str, tags: Sequence[Tag]) -> int:
    try:
        fits = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return len(tags)
    return next((rank for rank, tag in enumerate(tags) if tag in fits), len(tags))
