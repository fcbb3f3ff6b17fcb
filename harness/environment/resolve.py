"""From a combination to a lock, by uv's resolver; what can't be resolved is told in the resolver's own words."""

from __future__ import annotations

import contextlib
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.environment.attempt import Attempt, looser, project_of
from harness.environment.pylock import as_preferences, read_lock, undated_in
from harness.environment.undated import caps, of_a_torch_backend
from harness.environment.uv import Uv, spoken_by_uv
from harness.model import Combination, Lock, normalized_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from datetime import datetime

    from harness.environment.index import Index
    from harness.environment.interpreter import Interpreter

# A release is often followed within minutes by the sister that belongs to it.
ERA_MARGIN = timedelta(hours=1)
# Of one chain of requirements: a project, the build of torch that it brings, and what that build brings.
_TURNS = 4


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

        What is held with == may be newer than the date, and may bring companions of its own day. Whatever could not
        be held is told as drift. Files without upload time count by the dates that another index has of their
        release. Raises `NoNetwork` and `NoSpace`.
        """
        first_words = ""
        for attempt in self._attempts(self._capped(Attempt(combination), near, cancel), cancel):
            answer = self._compile(attempt, near, cancel)
            if isinstance(answer, Lock):
                return Resolution(answer, self._drift(combination, attempt, answer, near))
            first_words = first_words or answer.words
        return Unresolvable(first_words)

    def _attempts(self, asked: Attempt, cancel: threading.Event | None) -> Iterator[Attempt]:
        """What is asked itself, then ever looser ones."""
        yield asked
        if not asked.combination.holds:
            return
        if later := self._later(asked, cancel):
            yield evolve(asked, later=later)
        for combination in looser(asked.combination):
            yield evolve(asked, combination=combination, later=later if combination.holds else {})

    def _later(self, asked: Attempt, cancel: threading.Event | None) -> dict[str, datetime]:
        """Dates for what a held release brings along, where that release is newer than the date asked for."""
        combination = asked.combination
        later: dict[str, datetime] = {}
        for hold in combination.holds:
            upload = self._upload(hold)
            if combination.as_of is None or upload is None or upload <= combination.as_of:
                continue
            alone = evolve(combination, requirements=(hold,), holds=(), as_of=upload + ERA_MARGIN, near=None)
            answer = self._compile(self._capped(Attempt(alone), None, cancel), None, cancel)
            if isinstance(answer, Lock):
                later.update({pin.name: upload + ERA_MARGIN for pin in answer.pins})
        return later

    def _capped(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Attempt:
        """The same with caps for the projects that uv's own cap by date can't be left to.

        Where several indexes are in use, uv is asked for what there is today, too: it tells of each file that it
        chooses whether that has an upload time. What was found is capped, which may bring others into question.
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
            with self._asked(today, near, cancel) as (output, words):
                if not words:
                    names = frozenset(pin.name for pin in read_lock(output, self.interpreter).pins)
                    return names, undated_in(output)
        return frozenset(), frozenset()

    def _compile(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Lock | Unresolvable:
        with self._asked(attempt, near, cancel) as (output, words):
            return Unresolvable(words) if words else read_lock(output, self.interpreter)

    @contextlib.contextmanager
    def _asked(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Iterator[tuple[Path, str]]:
        """The lock file that uv wrote, for as long as the context lasts; with its words where it wrote none."""
        with tempfile.TemporaryDirectory(prefix="harness-resolve-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text("\n".join(attempt.combination.requirements) + "\n", encoding="utf-8")
            (here / "constraints.txt").write_text("\n".join(attempt.constraints) + "\n", encoding="utf-8")
            output = here / "pylock.toml"
            if near is not None:
                output.write_text(as_preferences(near), encoding="utf-8")
            answer = self.uv.call(*self._arguments(attempt), cwd=here, cancel=cancel)
            failed = answer.returncode != 0
            yield output, (spoken_by_uv(answer.words) or f"uv ended with code {answer.returncode}") if failed else ""

    def _arguments(self, attempt: Attempt) -> list[str | Path]:
        return [
            "--quiet",
            "pip",
            "compile",
            "requirements.in",
            "--constraints",
            "constraints.txt",
            "--python",
            self.interpreter.path,
            "--only-binary",
            ":all:",
            "--format",
            "pylock.toml",
            "--output-file",
            "pylock.toml",
            *attempt.options,
        ]

    def _upload(self, hold: str) -> datetime | None:
        """When the release that a hold names with == was uploaded, None where it names none."""
        requirement = Requirement(hold)
        named = [specifier.version for specifier in requirement.specifier if specifier.operator == "=="]
        release = self.index.release(requirement.name, named[0]) if named else None
        return release.uploaded if release is not None else None

    def _drift(self, asked: Combination, got: Attempt, lock: Lock, near: Lock | None) -> tuple[str, ...]:
        told = []
        for hold in map(Requirement, asked.holds):
            version = lock.version_of(normalized_name(hold.name))
            if version is not None and not hold.specifier.contains(version, prereleases=True):
                told.append(f"{hold.name} {version} instead of the held {hold.specifier}")
        if got.later:
            newest = max(got.later.values())
            told.append(f"what is held brings companions as of {newest:%Y-%m-%d}, later than the date asked for")
        if near is not None:
            asked_for = {project_of(requirement) for requirement in asked.requirements if "==" in requirement}
            told += [
                str(change)
                for change in near.diff(lock)
                if change.before and change.after and change.name not in asked_for
            ]
        return tuple(told)
