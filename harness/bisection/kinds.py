"""The kinds of question, and which options apply to each; the others are refused."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from attrs import fields_dict

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.culprit import Level
from harness.model.requirements import required_name
from harness.question.question import EndKind, Ends, Question, read_ends
from harness.question.releases import check_order
from harness.question.repros import runs_tests
from harness.settings import Settings

PYTHON = "python"


class QuestionKind(enum.Enum):
    """What the ends of a question are."""

    RELEASES = "releases of one package"
    WORLDS = "two sets of packages"
    COMMITS = "commits"
    PYTHONS = "Pythons"


_SCRIPT, _COMMAND, _MADE, _ASK, _CERTAIN = "a repro", "a command", "--made", "--ask", "a question without --flaky"
_PYTHONS, _COMMITS = QuestionKind.PYTHONS.value, QuestionKind.COMMITS.value
# What an option does not apply to, and is refused for. One that is not listed applies to every question.
_NOT_FOR: Mapping[str, frozenset[str]] = {
    "--pre": frozenset({_PYTHONS}),
    "--git": frozenset({_PYTHONS, _MADE, _ASK}),
    "--build": frozenset({_PYTHONS}),
    "--no-build": frozenset({QuestionKind.RELEASES.value, _COMMITS, _PYTHONS}),
    "--python": frozenset({_PYTHONS}),
    "--scheduler": frozenset({_PYTHONS, _MADE, _ASK}),
    "--constraints": frozenset({_PYTHONS, _COMMITS}),
    "--no-fork": frozenset({_COMMITS, _MADE, _ASK, "--depth release", "--depth package"}),
    "--time": frozenset({_COMMITS, _ASK}),
    "--flaky": frozenset({_ASK}),
    "--trust-ends": frozenset({_CERTAIN}),
    "--ask": frozenset({_MADE}),
    "--as-of": frozenset({QuestionKind.WORLDS.value}),
    "--made": frozenset({QuestionKind.WORLDS.value, _COMMITS, _PYTHONS, _COMMAND}),
    "--made-with": frozenset({_COMMAND}),
    **dict.fromkeys(("--project", "--extra", "--group", "--unpin"), frozenset({_SCRIPT})),
    **{f"--depth {level.value}": frozenset({_COMMITS, _ASK}) for level in Level},
    "--depth release": frozenset({_COMMITS}),
    "--depth commit": frozenset({_ASK}),
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
    """Refuse every option that does not apply to a question; `typed` are options that are no part of one.

    Raises `UserMistake`, which names the option and what it does not apply to.
    """
    policy, depth = question.policy, question.depth
    given = {_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in question.set} | typed
    known = fields_dict(Settings)
    given |= {known[name].metadata["option"].flag for name in _SETTINGS if getattr(settings, name)}
    if kind is QuestionKind.WORLDS and ends is not None and not _has_fixed_packages(ends):
        given.discard("--as-of")
    if kind is QuestionKind.COMMITS:
        given.discard("--git")  # its commits are what is searched
    asked = {kind.value, _SCRIPT if question.run is None else _COMMAND}
    asked |= {_MADE} if policy.made else set()
    asked |= {_ASK} if policy.ask else set()
    asked |= {_CERTAIN} if not policy.flaky else set()
    level = {f"--depth {depth.value}"} if depth is not None else set[str]()
    asked, given = asked | level, given | level
    for option in sorted(given):
        if excluding := sorted(asked & _NOT_FOR.get(option, frozenset())):
            to = "with" if excluding[0].startswith("--") else "to"
            raise UserMistake(f"{option} does not apply {to} {excluding[0]}", hint=f"leave out {option}")
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
