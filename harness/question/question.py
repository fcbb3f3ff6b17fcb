"""A question: what runs, its policy, and its two ends: days, files, interpreters, releases or commits."""

from __future__ import annotations

import enum
import os
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import field, fields, frozen

from harness.arguments import check_between, with_types
from harness.errors import UserMistake
from harness.model import Lock, parsed_version
from harness.model.culprit import Level
from harness.model.lock import moment_of
from harness.question.commands import ChosenProject

TODAY = "today"
_HASH = re.compile(r"(?=.*[a-f])[0-9a-f]{7,40}|\d{12,40}")  # fewer digits are a version or a day
_INTERPRETER = re.compile(r"pythonw?[\d.]*t?(?:\.exe)?")  # such as python, python3, python3.13t and python.exe
_IN_AN_ENVIRONMENT = ("bin/python", "Scripts/python.exe")


class EndKind(enum.StrEnum):
    """The kind of an end."""

    RELEASE = "release"
    DAY = "day"
    LOCK = "lock"
    PYTHON = "python"
    COMMIT = "commit"


@frozen
class End:
    """One end: `moment` is the time of a day (UTC), `path` that of a file or an interpreter.

    With `lock` its packages are known, and other versions are resolved as of `moment`.
    """

    kind: EndKind
    text: str
    moment: datetime | None = None
    path: Path | None = None
    lock: Lock | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the end as part of an answer's JSON."""
        return {"kind": self.kind.value, "text": self.text}


def parse_end(text: str, option: str, *, now: datetime, commits: bool = False) -> End:
    """Read an end: an existing path, a day, or a release; `option` is the option that it was given to.

    With `commits` anything else, and what looks like a hash, is a revision of a repository. A day without a time means
    its end, as it does for `--as-of`. Raises `UserMistake`.
    """
    path = Path(text).expanduser()
    if commits and _HASH.fullmatch(text):
        return End(EndKind.COMMIT, text)
    if os.path.exists(path):  # noqa: PTH110 - Path.exists raises if the text is too long for a path
        return _at_path(text, path, option)
    if (moment := _moment(text, now)) is not None:
        if moment > now + timedelta(days=1):
            raise UserMistake(f"{option} {text} is in the future", hint="today means the newest releases")
        return End(EndKind.DAY, text, moment=moment)
    if parsed_version(text) is not None:
        return End(EndKind.RELEASE, text)
    if commits:
        return End(EndKind.COMMIT, text)
    is_path = "/" in text or path.suffix in (".txt", ".toml", ".lock", ".yml", ".yaml")
    what = f"{option} {text}: there is no such file" if is_path else f"{text!r} is not a version, a day or a file"
    raise UserMistake(
        what,
        hint="an end is a release (1.26.4), a day (2025-06-20, today), a lock or requirements file, or a Python; "
        "with --git also a commit",
    )


def day_end(moment: datetime) -> End:
    """Return the end for a time that the harness chose itself."""
    return End(EndKind.DAY, moment.date().isoformat(), moment=moment)


def release_end(version: str) -> End:
    """Return the end at a release of the subject."""
    return End(EndKind.RELEASE, version)


def newest_end(as_of: str | None) -> End:
    """Return the day of the newest packages to use: `--as-of` if that is a day, otherwise today."""
    now = datetime.now(UTC)
    moment = _moment(as_of, now) if as_of else None
    return End(EndKind.DAY, as_of, moment=moment) if as_of and moment else parse_end(TODAY, "--as-of", now=now)


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
    good: str | None, bad: str | None, subject: str | None, *, commits: bool = False, tests: bool = False
) -> Ends | None:
    """Read the ends of a question between worlds; None if it is a question between releases of a subject.

    `commits`: there is a repository. `tests`: a test suite runs, so two releases of the subject are two worlds. Raises
    `UserMistake`.
    """
    now = datetime.now(UTC)
    typed = {name: text for name, text in (("good", good), ("bad", bad)) if text}
    given = {name: parse_end(text, f"--{name}", now=now, commits=commits) for name, text in typed.items()}
    releases = [end for end in given.values() if end.kind is EndKind.RELEASE]
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
        kind = EndKind.PYTHON if _INTERPRETER.fullmatch(path.name) else EndKind.LOCK
        return End(kind, text, path=path)
    for inside in _IN_AN_ENVIRONMENT:
        if (path / inside).exists():
            return End(EndKind.PYTHON, text, path=path / inside)
    raise UserMistake(
        f"{option} {text} is a folder without a Python", hint="give the folder of an environment, or a lock file"
    )


def _moment(text: str, now: datetime) -> datetime | None:
    if text == TODAY:
        # Round to the hour, so that the same question asked again soon finds its answers in the store.
        return now.replace(minute=0, second=0, microsecond=0)
    if "-" not in text:
        return None  # 20250620 is a version of some projects
    try:
        return moment_of(text)
    except (ValueError, OverflowError):
        return None


@frozen(field_transformer=with_types)
class Policy:
    """How a question is searched, whatever its ends are.

    `find_fix` looks for what fixed it: the good end is the newer one. `prereleases` tries pre-releases too. `confirm`
    is how often both sides of the change are run again (None: until the answer is certain enough). `flaky` says that
    one run does not tell good from bad; `confidence` is the probability that a candidate needs to be named.
    `trust_ends` says that there is a change and that the bug never shows before it. `fork` allows forked runs in the
    search for lines. `git` is the repository for the commit level: a clone, a URL, "auto", or "" for none. `time_s` is
    the time limit of the search below the release, in seconds (None: two minutes, more for slow runs). `ask` lets a
    person judge each run. `made` searches the releases that write what the repro reads. Raises `UserMistake` for a
    wrong value.
    """

    find_fix: bool = False
    prereleases: bool = False
    confirm: int | None = None
    flaky: bool = False
    confidence: float = 0.99
    trust_ends: bool = False
    fork: bool = True
    git: str = ""
    time_s: float | None = None
    ask: bool = False
    made: bool = False

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that search another question in the same way, quoted for a shell."""
        usual = Policy()
        flags = {"--pre": self.prereleases, "--flaky": self.flaky, "--no-fork": not self.fork, "--ask": self.ask}
        values = {"--git": self.git} if self.git else {}
        values |= {"--confirm": str(self.confirm)} if self.confirm is not None else {}
        values |= {"--confidence": str(self.confidence)} if self.confidence != usual.confidence else {}
        values |= {"--time": f"{self.time_s:g}s"} if self.time_s != usual.time_s else {}
        words = [flag for flag, is_set in flags.items() if is_set]
        words += [word for pair in values.items() for word in pair]
        return tuple(map(shlex.quote, words))

    def __attrs_post_init__(self) -> None:
        check_between("Policy(confirm=...)", self.confirm, 0, 20)
        check_between("Policy(confidence=...)", self.confidence, 0.5, 0.999999)
        if self.time_s is not None:
            check_between("Policy(time_s=...)", self.time_s, 0)


def _read_level(level: Level | str | None) -> Level | None:
    if level is None or isinstance(level, Level):
        return level
    try:
        return Level(level)
    except ValueError as error:
        known = ", ".join(one.value for one in Level)
        raise UserMistake(f"depth takes a level, not {level!r}", hint=f"the levels are {known}") from error


@frozen(field_transformer=with_types)
class Question:
    """What broke it? The question of `harness bisect`, with the values of its options.

    `subject` is the package to look at ("python" for the Python itself), None to find the package. What runs is a
    `repro` (a name or a path; default: the one that names the subject) or the command `run`, in a copy of the
    `project`. `good` and `bad` are the ends: a release, a day, a lock file, an environment, a commit or a Python.
    `depth` is how deep to go: "release", "package", "file", "region" or "commit"; `policy` how to search.
    Raises `UserMistake` for a wrong value.
    """

    subject: str | None = None
    repro: str | None = None
    run: str | None = None
    good: str | None = None
    bad: str | None = None
    depth: Level | None = field(default=None, converter=_read_level)
    policy: Policy = Policy()
    project: ChosenProject = ChosenProject()

    @property
    def set(self) -> frozenset[str]:
        """The names of the parts of the policy and the project that differ from their defaults, and "depth"."""
        found = {"depth"} if self.depth is not None else set()
        for value, plain in ((self.policy, Policy()), (self.project, ChosenProject())):
            found |= {one.name for one in fields(type(value)) if getattr(value, one.name) != getattr(plain, one.name)}
        return frozenset(found)
