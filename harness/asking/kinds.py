"""The kinds of question, and which options apply to each; the others are refused."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from attrs import fields_dict

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.culprit import Level
from harness.planning.releases import check_order
from harness.request.parsing import required_name
from harness.request.question import EndKind, Ends, Question, read_ends
from harness.request.repros import runs_tests
from harness.settings import Settings

PYTHON = "python"


class QuestionKind(enum.Enum):
    """What the ends of a question are."""

    RELEASES = "releases of one package"
    WORLDS = "two sets of packages"
    COMMITS = "commits"
    PYTHONS = "Pythons"


# Why an option does not apply to a kind of question; what is not listed is honoured.
_MEANINGLESS: Mapping[tuple[str, QuestionKind], str] = {
    ("--pre", QuestionKind.PYTHONS): "Pythons are searched as they are installed",
    ("--git", QuestionKind.PYTHONS): "the commits of Python itself are not searched",
    ("--build", QuestionKind.PYTHONS): "each Python has packages of its own",
    ("--no-build", QuestionKind.PYTHONS): "nothing is built",
    ("--no-build", QuestionKind.RELEASES): "nothing is built unless --build allows it",
    ("--no-build", QuestionKind.COMMITS): "nothing is built unless --build allows it",
    ("--python", QuestionKind.PYTHONS): "the Pythons are what is searched; name them with --good and --bad",
    ("--scheduler", QuestionKind.PYTHONS): "it runs on this machine, whose Pythons are searched",
    ("--constraints", QuestionKind.PYTHONS): "a constraints file can't hold back Python",
    ("--constraints", QuestionKind.COMMITS): "a constraints file can't name a commit",
    ("--fork", QuestionKind.COMMITS): "no lines are searched between commits",
    ("--no-fork", QuestionKind.COMMITS): "no lines are searched between commits",
    ("--time", QuestionKind.COMMITS): "nothing is searched below a commit",
    ("--made", QuestionKind.WORLDS): "name the package whose releases write the files",
    ("--made", QuestionKind.COMMITS): "no commits of what writes the files are searched",
    ("--made", QuestionKind.PYTHONS): "a Python is not what writes the files",
    ("--as-of", QuestionKind.WORLDS): "the ends say which packages are installed",
}
# Parts of a question that are not called like the option that sets them.
_FLAGS = {
    "prereleases": "--pre",
    "fork": "--no-fork",
    "time_s": "--time",
    "folder": "--project",
    "extras": "--extra",
    "groups": "--group",
}
_PROJECT = frozenset({"--project", "--extra", "--group", "--unpin"})
_FORKS = frozenset({"--fork", "--no-fork"})
_SETTINGS = ("as_of", "made_with", "python", "scheduler", "from_source", "no_build")


def kind_of(question: Question, settings: Settings) -> tuple[QuestionKind, Ends | None]:
    """Return the kind of a question and its ends, None for releases whose ends the repro may name.

    Raises `UserMistake`.
    """
    subject = question.subject
    if subject is not None and normalized_name(subject) == PYTHON:
        return QuestionKind.PYTHONS, None
    is_suite = question.run is not None and runs_tests(question.run)
    is_suite = is_suite and not question.policy.find_fix and settings.as_of != "era"
    ends = read_ends(question.good, question.bad, subject, commits=bool(question.policy.git), tests=is_suite)
    if ends is None:
        return QuestionKind.RELEASES, None
    if not ends.are_commits:
        return QuestionKind.WORLDS, ends
    if subject is None:
        raise UserMistake(
            "a commit needs a package: which one is it a commit of?",
            hint="harness bisect PACKAGE --good TAG --bad main --git CLONE",
        )
    return QuestionKind.COMMITS, ends


def refuse_meaningless(
    question: Question, settings: Settings, kind: QuestionKind, ends: Ends | None, typed: frozenset[str] = frozenset()
) -> None:
    """Refuse every option that does not apply to a question; `typed` are options that were typed with their default.

    Raises `UserMistake`, which names the option and says why.
    """
    given = {_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in question.set} | typed
    known = fields_dict(Settings)
    given |= {known[name].metadata["option"].flag for name in _SETTINGS if getattr(settings, name)}
    if kind is QuestionKind.WORLDS and ends is not None and not _has_fixed_packages(ends):
        given.discard("--as-of")
    for option in sorted(given):
        why = _MEANINGLESS.get((option, kind))
        if why is not None:
            raise UserMistake(f"{option} does not apply to {kind.value}: {why}", hint=f"leave out {option}")
    policy, depth = question.policy, question.depth
    plain = given - {"--git"} if kind is QuestionKind.COMMITS else given
    for applies, options, why, hint in _rules(question):
        if applies and (mine := sorted(options & plain)):
            raise UserMistake(f"{mine[0]} {why}", hint=hint or f"leave out {mine[0]}")
    if policy.ask and depth is not None and depth is not Level.RELEASE:
        raise UserMistake(
            f"--depth {depth.value} can't go with --ask: it would take more runs than anybody can judge",
            hint="leave out --depth, or describe the bug in a repro that the harness can judge",
        )
    if kind is QuestionKind.COMMITS and depth is not None and depth is not Level.COMMIT:
        raise UserMistake(f"--depth {depth.value} does not apply to commits: a commit is what is searched")
    if kind is QuestionKind.WORLDS and ends is not None:
        _refuse_fix(question, ends)
    # With --made, the releases that are searched write; --with is for what reads.
    option, texts = ("--made-with", settings.made_with) if policy.made else ("--with", settings.with_)
    if question.subject is not None and any(
        required_name(text) == normalized_name(question.subject)
        for text in texts
        if not text.startswith("-r") and "@" not in text
    ):
        raise UserMistake(
            f"{option} names {question.subject}, whose releases are what is searched",
            hint="--good and --bad set the ends",
        )


def _rules(question: Question) -> Iterable[tuple[bool, frozenset[str], str, str]]:
    """Yield the options that other parts of a question exclude: whether they do, the options, why, and what to do."""
    policy, depth = question.policy, question.depth
    yield question.run is None, _PROJECT, "goes with --run: a repro has no project", 'for example --run "pytest"'
    yield not policy.flaky, frozenset({"--trust-ends"}), "goes with --flaky", "add --flaky, or leave out --trust-ends"
    made = frozenset({"--made", "--made-with"})
    yield question.run is not None, made, "goes with a repro: --run has no first step", ""
    why = "does not apply with --made: each release writes files of its own, on this machine"
    yield policy.made, _FORKS | {"--ask", "--git", "--scheduler"}, why, ""
    judged = _FORKS | {"--flaky", "--scheduler", "--git", "--time"}
    yield policy.ask, judged, "does not apply with --ask: you judge each run", ""
    if depth in (Level.RELEASE, Level.PACKAGE):
        yield True, _FORKS, f"does not apply with --depth {depth.value}: no lines are searched", ""


def _refuse_fix(question: Question, ends: Ends) -> None:
    """Check that the ends of days or releases are in the order that `--find-fix` says. Raises `UserMistake`."""
    good, bad, find_fix = ends.good, ends.bad, question.policy.find_fix
    if good is None and find_fix:
        hint = "name them with --good and --bad"
        raise UserMistake("--find-fix between two sets of packages needs both ends", hint=hint)
    if good is not None and good.kind is bad.kind is EndKind.RELEASE:
        check_order(good.text, bad.text, find_fix=find_fix)
    if good is not None and good.moment is not None and bad.moment is not None:
        moments = {good.text: good.moment, bad.text: bad.moment}
        check_order(good.text, bad.text, find_fix=find_fix, key=moments.__getitem__)


def _has_fixed_packages(ends: Ends) -> bool:
    """Whether an end says by itself which packages are installed; a release says it of one package only."""
    named = [end for end in (ends.good, ends.bad) if end is not None]
    return any(end.kind is not EndKind.RELEASE for end in named if end.text != "today")
