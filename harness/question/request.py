"""A request as it was typed: what runs, its policy, its two ends, and which options apply; the others are refused.

Ends are days, files, interpreters, releases or commits.
"""

from __future__ import annotations

import enum
import os
import re
import shlex
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from attrs import evolve, field, fields, frozen

from harness.arguments import Option, OptionGroup, Trait, check_between, documented, option_field, with_types
from harness.environment.images import PREFIXES
from harness.errors import UserMistake
from harness.model import Lock, Signature, normalized_name, parsed_version
from harness.model.culprit import Commit, Level
from harness.model.lock import moment_of
from harness.model.requirements import required_name
from harness.model.signature import check_pattern
from harness.question.commands import ChosenProject
from harness.question.parsing import version_of
from harness.question.repros import runs_tests
from harness.question.revisions import TrackedFile, commit_at, file_at_revision
from harness.search import Noise
from harness.settings import Settings

if TYPE_CHECKING:
    from harness.environment import Index

TODAY = "today"
_search = partial(option_field, group=OptionGroup.SEARCH)
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
        commit, made = commit_at(file, revision, _moment(revision, now), option)
        return End(EndKind.LOCK, text, made, file, commit=commit)
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


def at_releases(request: Request, index: Index, now: datetime) -> Request:
    """Return a question about a subject with an index of its own, with the newest release of each end that is a day.

    Pre-releases count, because such an index has nightly builds. Raises `UserMistake`, `UnknownProject`, `NoNetwork`.
    """
    good, bad = (
        _release_of(request.subject or "", text, index, now) if text else None for text in (request.good, request.bad)
    )
    return evolve(request, good=good, bad=bad, policy=evolve(request.policy, prereleases=True))


def _release_of(subject: str, text: str, index: Index, now: datetime) -> str:
    if (moment := _moment(text, now)) is None:
        return text
    # A build whose version names only its day counts from the midnight at which the day before ends.
    releases = [release for release in index.releases(subject) if release.uploaded and release.uploaded < moment]
    if not releases:
        dated = next((release for release in index.releases(subject) if release.uploaded), None)
        hint = f"the oldest is {dated.version}" if dated is not None else "its index has no days: name releases"
        raise UserMistake(f"{subject} has no build up to {text}", hint=hint)
    return str(max(releases, key=lambda release: (release.uploaded or now, release.version)).version)


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


def _moment(text: str, now: datetime) -> datetime | None:
    if text == TODAY:
        return now
    if "-" not in text:
        return None  # 20250620 is a version of some projects
    try:
        return moment_of(text)
    except (ValueError, OverflowError):
        return None


class PolicyOptions(TypedDict, total=False):
    """The fields of `Policy` as keyword arguments, for type checkers and editors."""

    find_fix: bool
    prereleases: bool
    confirm: int | None
    flaky: bool
    confidence: float
    trust_ends: bool
    fork: bool
    git: str
    time_s: float | None
    ask: bool
    made: bool
    metric: str


@documented
@frozen(field_transformer=with_types)
class Policy:
    """How a question is searched, whatever its ends are.

    `confidence` is a probability, and `time_s` is in seconds. Raises `UserMistake` for a wrong value.
    """

    find_fix: bool = _search(False, "--find-fix", "Find the release that fixed it: good is newer than bad.")
    prereleases: bool = _search(False, "--pre", "Try pre-releases of the subject too.", not_for=(Trait.PYTHONS,))
    confirm: int | None = _search(
        None,
        "--confirm",
        "Run both sides of the change this often again [default: as often as it takes to be sure].",
    )
    flaky: bool = _search(
        False, "--flaky", "One run does not tell good from bad: repeat runs from the start.", not_for=(Trait.ASK,)
    )
    confidence: float = _search(
        0.99, "--confidence", "How sure a release has to be before it is named.", shown_default=True
    )
    trust_ends: bool = _search(
        False,
        "--trust-ends",
        "With --flaky: you are certain that the bug never shows at the good end. Saves runs.",
        not_for=(Trait.CERTAIN,),
    )
    fork: bool = _search(
        True,
        "--fork/--no-fork",
        "Fork the runs of a search: faster. What is claimed runs in fresh processes.",
        shown_default=True,
        not_for=(Trait.COMMITS, Trait.MADE, Trait.ASK),
    )
    git: str = _search(
        "",
        "--git",
        "Repository of SUBJECT, to go down to the commit.",
        metavar="PATH|URL|auto",
        not_for=(Trait.PYTHONS, Trait.MADE, Trait.ASK),
    )
    time_s: float | None = _search(
        None,
        "--time",
        "How long to search below the release: 90s, 10m, 1h.",
        metavar="TIME",
        shown_default="2m, or as long as 40 runs take, up to 10m",
        not_for=(Trait.COMMITS, Trait.ASK),
    )
    ask: bool = _search(
        False,
        "--ask",
        "Judge each run yourself: good, bad or skip; for what only eyes can see.",
        not_for=(Trait.MADE,),
    )
    made: bool = _search(
        False,
        "--made",
        "Search the releases of SUBJECT that write the files of the repro's first step, not those that read them.",
        not_for=(Trait.PACKAGES, Trait.COMMITS, Trait.PYTHONS, Trait.COMMAND),
    )
    metric: str = _search(
        "",
        "--metric",
        "The number that got worse: one that the run writes, seconds, peak_memory, or 'regex with (number)'.",
        metavar="NAME|REGEX",
        not_for=(Trait.PYTHONS, Trait.MADE, Trait.ASK),
    )

    @property
    def noise(self) -> Noise:
        """How sure a search over a line has to be."""
        return Noise(self.flaky, self.confidence, self.trust_ends, self.confirm)

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that search another question in the same way, quoted for a shell."""
        words: list[str] = []
        for option, name in given_in(self).items():
            value = getattr(self, name)
            if name not in ("find_fix", "trust_ends", "made"):
                text = f"{value:g}s" if name == "time_s" else str(value)
                words += [option.name] if isinstance(value, bool) else [option.name, text]
        return tuple(map(shlex.quote, words))

    def __attrs_post_init__(self) -> None:
        check_between("Policy(confirm=...)", self.confirm, 0, 20)
        check_between("Policy(confidence=...)", self.confidence, 0.5, 0.999999)
        if self.time_s is not None:
            check_between("Policy(time_s=...)", self.time_s, 0)
        if "(" in self.metric:
            try:
                check_pattern(self.metric)
            except ValueError as error:
                raise UserMistake(f"--metric {self.metric} is not a regular expression: {error}") from error

    def recognising(self, signature: Signature | None) -> Signature | None:
        """Return the signature of a question: the repro's own, unless it says nothing of the metric that is wanted."""
        if not self.metric or (signature is not None and signature.metric == self.metric):
            return signature
        return Signature(metric=self.metric)


def _read_level(level: Level | str | None) -> Level | None:
    if level is None or isinstance(level, Level):
        return level
    try:
        return Level(level)
    except ValueError as error:
        known = ", ".join(level.value for level in Level)
        raise UserMistake(f"depth takes a level, not {level!r}", hint=f"the levels are {known}") from error


@documented
@frozen(field_transformer=with_types)
class Request:
    """What broke it? What was typed after `harness bisect`, with the values of its options.

    `subject` is the package to look at ("python" for the Python itself), None to find the package. What runs is a
    `repro` (a name or a path; default: the one that names the subject) or the command `run`, in a copy of the
    `project`. `good` and `bad` are the ends: a release, a day, a lock file, an environment, an image, a commit or a
    Python. `depth` is how deep to go: "release", "package", "file", "region" or "commit"; `policy` how to search.
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


def given_in(value: Policy | ChosenProject | Settings) -> dict[Option, str]:
    """Return the options whose fields differ from their defaults, with the names of the fields."""
    given = (part for part in fields(type(value)) if getattr(value, part.name) != part.default)
    return {part.metadata["option"]: part.name for part in given if "option" in part.metadata}


PYTHON = "python"


class QuestionKind(enum.Enum):
    """What the ends of a question are."""

    RELEASES = Trait.RELEASES
    PACKAGES = Trait.PACKAGES
    COMMITS = Trait.COMMITS
    PYTHONS = Trait.PYTHONS


def kind_of(request: Request, settings: Settings, now: datetime | None = None) -> tuple[QuestionKind, Ends | None]:
    """Return the kind of a question and its ends, None for releases whose ends the repro may name.

    `now` is the moment that "today" means. Raises `UserMistake`.
    """
    subject = request.subject
    if subject is not None and normalized_name(subject) == PYTHON:
        return QuestionKind.PYTHONS, None
    is_suite = request.run is not None and runs_tests(request.run)
    is_suite = is_suite and not request.policy.find_fix and settings.as_of != "era"
    now, has_repository = now or datetime.now(UTC), bool(request.policy.git)
    has_own = normalized_name(subject or "") in dict(settings.own_indexes)
    ends = read_ends(request.good, request.bad, subject, now=now, commits=has_repository, tests=is_suite, days=has_own)
    if ends is None:
        return QuestionKind.RELEASES, None
    if not ends.are_commits:
        return QuestionKind.PACKAGES, ends
    if subject is None:
        raise UserMistake(
            "a commit needs a package: which one is it a commit of?",
            hint="harness bisect PACKAGE --good TAG --bad main --git CLONE",
        )
    return QuestionKind.COMMITS, ends


_ONLY_TO = {Trait.COMMITS: Level.COMMIT, Trait.ASK: Level.RELEASE}  # these questions go to no other level


def refuse_meaningless(
    request: Request, settings: Settings, kind: QuestionKind, ends: Ends | None, typed: Collection[Option] = ()
) -> None:
    """Refuse every option that does not apply to a question; `typed` are options that are no part of one.

    Raises `UserMistake`, which names the option and what it does not apply to.
    """
    policy = request.policy
    given = {*given_in(policy), *given_in(request.project), *typed}
    given |= {option for option in given_in(settings) if option.group in (OptionGroup.QUESTION, OptionGroup.LANES)}
    traits = {kind.value, Trait.SCRIPT if request.run is None else Trait.COMMAND}
    traits |= {Trait.MADE} if policy.made else set()
    traits |= {Trait.ASK} if policy.ask else set()
    traits |= {Trait.CERTAIN} if not policy.flaky else set()
    if (depth := request.depth) is not None:
        level = f"--depth {depth.value}"
        traits |= {trait for trait in (Trait.TO_RELEASE, Trait.TO_PACKAGE) if trait == level}
        not_for = tuple(trait for trait, known in _ONLY_TO.items() if depth is not known)
        given.add(Option(level, OptionGroup.SEARCH, "", not_for=not_for))
    ignored = set[str]()
    if kind is QuestionKind.PACKAGES and ends is not None and not _has_fixed_packages(ends):
        ignored.add("--as-of")
    if kind is QuestionKind.COMMITS:
        ignored.add("--git")  # its commits are what is searched
    for option in sorted(given, key=lambda option: option.name):
        excluding = sorted(traits.intersection(option.not_for))
        if excluding and option.name not in ignored:
            to = "with" if excluding[0].startswith("--") else "to"
            raise UserMistake(f"{option.name} does not apply {to} {excluding[0]}", hint=f"leave out {option.name}")
    if kind is QuestionKind.PACKAGES and ends is not None:
        _refuse_fix(request, ends)
    _refuse_subject(request, settings)


def _refuse_subject(request: Request, settings: Settings) -> None:
    """Refuse a requirement of the subject, whose releases are searched. Raises `UserMistake`."""
    # With --made, the releases that are searched write; --with is for what reads.
    option, texts = ("--made-with", settings.made_with) if request.policy.made else ("--with", settings.with_)
    if request.subject is not None and any(
        required_name(text) == normalized_name(request.subject)
        for text in texts
        if not text.startswith("-r") and "@" not in text
    ):
        raise UserMistake(
            f"{option} names {request.subject}, whose releases are what is searched",
            hint="--good and --bad set the ends",
        )


def _refuse_fix(request: Request, ends: Ends) -> None:
    """Check that the ends of days or releases are in the order that `--find-fix` says. Raises `UserMistake`."""
    good, bad, find_fix = ends.good, ends.bad, request.policy.find_fix
    if good is None and find_fix:
        hint = "name them with --good and --bad"
        raise UserMistake("--find-fix between two sets of packages needs both ends", hint=hint)
    if good is not None and good.kind is bad.kind is EndKind.RELEASE:
        check_order(good.text, bad.text, find_fix=find_fix)
    if good is not None and good.kind is bad.kind is EndKind.DAY and good.moment is not None and bad.moment is not None:
        moments = {good.text: good.moment, bad.text: bad.moment}
        check_order(good.text, bad.text, find_fix=find_fix, key=moments.__getitem__)


def _has_fixed_packages(ends: Ends) -> bool:
    """Whether an end says by itself which packages are installed; a release says it of one package only."""
    named = [end for end in (ends.good, ends.bad) if end is not None]
    return any(end.kind is not EndKind.RELEASE for end in named if end.text != "today")


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
