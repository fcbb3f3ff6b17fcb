"""The two ends of a question: days, files, interpreters, images, releases or commits, as they were typed."""

from __future__ import annotations

import enum
import os
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import frozen

from harness.environment.images import PREFIXES
from harness.errors import UserMistake
from harness.model import Lock, parsed_version
from harness.model.culprit import Commit
from harness.model.lock import moment_of
from harness.question.lockfiles import ENDINGS
from harness.question.parsing import version_of
from harness.question.revisions import TrackedFile, commit_at, file_at_revision

TODAY = "today"
_HASH = re.compile(r"(?=.*[a-f])[0-9a-f]{7,40}|\d{12,40}")  # fewer digits are a version or a day
INTERPRETER = re.compile(r"pythonw?[\d.]*t?(?:\.exe)?")  # such as python, python3, python3.13t and python.exe
_IN_AN_ENVIRONMENT = ("bin/python", "Scripts/python.exe")


class EndKind(enum.StrEnum):
    """The kind of an end."""

    RELEASE = "release"
    DAY = "day"
    LOCK = "lock"
    PYTHON = "python"
    IMAGE = "image"
    COMMIT = "commit"


@frozen
class End:
    """One end: `moment` is the time of a day or of a commit (UTC), `path` that of a file or an interpreter.

    With `lock` its packages are known, and other versions are resolved as of `moment`. Today's is the moment of the
    question. The file `path` is read as it was in `commit` of the repository that tracks it, if there is one.
    """

    kind: EndKind
    text: str
    moment: datetime | None = None
    path: Path | None = None
    lock: Lock | None = None
    commit: Commit | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the end as part of an answer's JSON; today and a commit say their moment (ISO 8601, UTC)."""
        commit = {"commit": self.commit.sha} if self.commit is not None else {}
        is_said = self.moment is not None and (self.is_today or bool(commit))
        moment = {"moment": self.moment.isoformat()} if is_said and self.moment is not None else {}
        return {"kind": self.kind.value, "text": self.text, **moment, **commit}

    @property
    def is_today(self) -> bool:
        """Whether it means the newest packages at the moment of the question."""
        return self.kind is EndKind.DAY and self.text == TODAY

    @property
    def option(self) -> str:
        """The text for --good or --bad, quoted for a shell.

        "" for an older release of one package beside the others of today, which no option names.
        """
        return "" if self.kind is EndKind.RELEASE and " " in self.text else shlex.quote(self.text)

    @property
    def day(self) -> str:
        """The day of a commit (ISO date), else the end's text."""
        return self.commit.day if self.commit is not None else self.text

    @property
    def described(self) -> str:
        """The end in words: its text, with the commit and its day if it has one."""
        if self.commit is None:
            return self.text
        if self.text.endswith(f"@{self.commit.short}"):
            return f"{self.text} ({self.day})"
        return f"{self.text} ({self.commit.short} of {self.day})"


def parse_end(text: str, option: str, *, now: datetime, commits: bool = False) -> End:
    """Read an end: an image, a path, a file at a revision, a day, or a release; `option` is the one it was given to.

    With `commits` anything else, and what looks like a hash, is a revision of a repository. A day without a time means
    its end, as it does for `--as-of`. Raises `UserMistake`.
    """
    path = Path(text).expanduser()
    if text.startswith(PREFIXES):
        return End(EndKind.IMAGE, text)
    if commits and _HASH.fullmatch(text):
        return End(EndKind.COMMIT, text)
    if os.path.exists(path):  # noqa: PTH110 - Path.exists raises if the text is too long for a path
        return _at_path(text, path, option)
    if (named := file_at_revision(text)) is not None:
        file, revision = named
        commit, made = commit_at(file, revision, moment_in(revision, now), option)
        return End(EndKind.LOCK, text, made, file, commit=commit)
    if (moment := moment_in(text, now)) is not None:
        if moment > now + timedelta(days=1):
            raise UserMistake(f"{option} {text} is in the future", hint="today means the newest releases")
        return End(EndKind.DAY, text, moment=moment)
    if parsed_version(text) is not None:
        return End(EndKind.RELEASE, text)
    if commits:
        return End(EndKind.COMMIT, text)
    is_path = "/" in text or path.suffix in ENDINGS
    what = f"{option} {text}: there is no such file" if is_path else f"{text!r} is not a version, a day or a file"
    raise UserMistake(
        what,
        hint="an end is a release (1.26.4), a day (2025-06-20, today), a lock or requirements file, also one "
        "in git (uv.lock@v1.4.0, uv.lock@2025-06-20), a Python, or an image (docker://NAME); with --git also a commit",
    )


def day_end(moment: datetime) -> End:
    """Return the end for a time that the harness chose itself."""
    return End(EndKind.DAY, moment.date().isoformat(), moment=moment)


def commit_end(file: TrackedFile, commit: Commit) -> End:
    """Return the end for a file in a commit that the harness chose itself."""
    folder, here = file.repository.folder, Path.cwd()
    path = folder / file.path
    shown = os.path.relpath(path, here) if here.is_relative_to(folder) else path
    made = file.repository.dates([commit.sha])[commit.sha].astimezone(UTC)
    return End(EndKind.LOCK, f"{shown}@{commit.short}", made, path, commit=commit)


def release_end(version: str) -> End:
    """Return the end at a release of the subject."""
    return End(EndKind.RELEASE, version)


def newest_end(as_of: str | None, now: datetime) -> End:
    """Return the day of the newest packages to use: `--as-of` if that is a day, otherwise today."""
    moment = moment_in(as_of, now) if as_of else None
    return End(EndKind.DAY, as_of, moment=moment) if as_of and moment else parse_end(TODAY, "--as-of", now=now)


def end_words(end: End) -> str:
    """Return an end as part of a sentence."""
    if end.is_today and end.moment is not None:
        return f"as of today ({end.moment:%Y-%m-%d %H:%M} UTC)"
    return {EndKind.DAY: f"as of {end.text}", EndKind.RELEASE: end.text}.get(end.kind, f"with {end.described}")


@frozen
class Ends:
    """The two ends as they were typed; `good` is None if it has to be found."""

    good: End | None
    bad: End

    @property
    def are_commits(self) -> bool:
        """Whether one of them is a commit; then both are read as revisions."""
        return any(end is not None and end.kind is EndKind.COMMIT for end in (self.good, self.bad))


def read_ends(
    good: str | None,
    bad: str | None,
    subject: str | None,
    *,
    now: datetime,
    commits: bool = False,
    tests: bool = False,
    days: bool = False,
) -> Ends | None:
    """Read the ends of a question between two sets of packages; None if it is a question between releases of a subject.

    `commits`: there is a repository. `tests`: a test suite runs, so two releases of the subject are two sets of
    packages. `days`: a day means the subject's release of that day. `now` is the moment that "today" means. Raises
    `UserMistake`.
    """
    typed = {name: text for name, text in (("good", good), ("bad", bad)) if text}
    given = {name: parse_end(text, f"--{name}", now=now, commits=commits) for name, text in typed.items()}
    of_releases = (EndKind.RELEASE, EndKind.DAY) if days and not tests else (EndKind.RELEASE,)
    releases = [end for end in given.values() if end.kind in of_releases]
    if subject is not None and not tests and len(releases) == len(given):
        return None
    if subject is None and releases:
        raise UserMistake(
            f"{releases[0].text} could be a release or a tag, but no package is named",
            hint="harness bisect PACKAGE --good V --bad V; without a package, an end is a day, a file or a Python",
        )
    return Ends(given.get("good"), given.get("bad") or parse_end(TODAY, "--bad", now=now))


def _at_path(text: str, path: Path, option: str) -> End:
    if path.is_file():
        kind = EndKind.PYTHON if INTERPRETER.fullmatch(path.name) else EndKind.LOCK
        return End(kind, text, path=path)
    for inside in _IN_AN_ENVIRONMENT:
        if (path / inside).exists():
            return End(EndKind.PYTHON, text, path=path / inside)
    raise UserMistake(
        f"{option} {text} is a folder without a Python", hint="give the folder of an environment, or a lock file"
    )


def moment_in(text: str, now: datetime) -> datetime | None:
    """Return the moment that a day means, None for another text; `now` is that of today."""
    if text == TODAY:
        return now
    if "-" not in text:
        return None  # 20250620 is a version of some projects
    try:
        return moment_of(text)
    except (ValueError, OverflowError):
        return None


def check_order(good: str | None, bad: str | None, *, find_fix: bool, key: Callable[[str], Any] = version_of) -> None:
    """Raise `UserMistake` if the two ends are the wrong way round by `key`."""
    if good is None or bad is None:
        return
    if key(good) == key(bad):
        raise UserMistake(f"--good and --bad are both {good}; there is nothing between them")
    is_older = key(good) < key(bad)
    if find_fix and is_older:
        raise UserMistake(
            f"--good {good} is older than --bad {bad}, so there is no fix to find between them",
            hint="leave out --find-fix to find what broke it",
        )
    if not find_fix and not is_older:
        raise UserMistake(
            f"--good {good} is newer than --bad {bad}", hint="swap them, or add --find-fix to find what fixed it"
        )
