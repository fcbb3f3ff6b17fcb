"""A request as it was typed: what runs, its ends and its policy, and which options apply; the others are refused."""

from __future__ import annotations

import enum
from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from attrs import evolve, field, frozen

from harness.arguments import Option, OptionGroup, Options, Trait, documented, option_field, with_types
from harness.errors import UserMistake
from harness.model import Signature, normalized_name
from harness.model.culprit import Level
from harness.model.requirements import required_name
from harness.model.signature import check_pattern
from harness.question.commands import ChosenProject
from harness.question.ends import EndKind, Ends, check_order, moment_in, read_ends
from harness.question.repros import runs_tests
from harness.search import Noise
from harness.settings import Settings

if TYPE_CHECKING:
    from harness.environment import Index

_search = partial(option_field, group=OptionGroup.SEARCH)
_OF_ONE_QUESTION = ("--find-fix", "--trust-ends", "--made")


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
class Policy(Options):
    """How a question is searched, whatever its ends are.

    `confidence` is a probability, and `time_s` is in seconds. Raises `UserMistake` for a wrong value.
    """

    find_fix: bool = _search(False, "--find-fix", "Find the release that fixed it: good is newer than bad.")
    prereleases: bool = _search(False, "--pre", "Try pre-releases of the subject too.", not_for=(Trait.PYTHONS,))
    confirm: int | None = _search(
        None,
        "--confirm",
        "Run both sides of the change this often again [default: as often as it takes to be sure].",
        between=(0, 20),
    )
    flaky: bool = _search(
        False, "--flaky", "One run does not tell good from bad: repeat runs from the start.", not_for=(Trait.ASK,)
    )
    confidence: float = _search(
        0.99,
        "--confidence",
        "How sure a release has to be before it is named.",
        shown_default=True,
        between=(0.5, 0.999999),
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
        unit="s",
        between=(0, float("inf")),
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
        return self.words_of_given(lambda option: option.flag not in _OF_ONE_QUESTION)

    def __attrs_post_init__(self) -> None:
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


def at_releases(request: Request, index: Index, now: datetime) -> Request:
    """Return a question about a subject with an index of its own, with the newest release of each end that is a day.

    Pre-releases count, because such an index has nightly builds. Raises `UserMistake`, `UnknownProject`, `NoNetwork`.
    """
    good, bad = (
        _release_of(request.subject or "", text, index, now) if text else None for text in (request.good, request.bad)
    )
    return evolve(request, good=good, bad=bad, policy=evolve(request.policy, prereleases=True))


def _release_of(subject: str, text: str, index: Index, now: datetime) -> str:
    if (moment := moment_in(text, now)) is None:
        return text
    # A build whose version names only its day counts from the midnight at which the day before ends.
    releases = [release for release in index.releases(subject) if release.uploaded and release.uploaded < moment]
    if not releases:
        dated = next((release for release in index.releases(subject) if release.uploaded), None)
        hint = f"the oldest is {dated.version}" if dated is not None else "its index has no days: name releases"
        raise UserMistake(f"{subject} has no build up to {text}", hint=hint)
    return str(max(releases, key=lambda release: (release.uploaded or now, release.version)).version)


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
    given = {*policy.given(), *request.project.given(), *typed}
    given |= {option for option in settings.given() if option.group in (OptionGroup.QUESTION, OptionGroup.LANES)}
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
    return any(end.kind is not EndKind.RELEASE for end in named if not end.is_today)
