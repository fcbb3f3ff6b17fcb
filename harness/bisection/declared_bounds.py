"""Whether declared bounds are true: runs the lowest and the highest release that each requirement allows.

Where one fails, the releases between the two are searched for the bound that would be true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement
from packaging.specifiers import Specifier

from harness.bisection.answer import Status
from harness.bisection.ask import ask, command_of
from harness.errors import UnknownProject, UserMistake
from harness.model import name_of
from harness.model.culprit import Level
from harness.model.requirements import exact_version, required_name, unbounded
from harness.question.request import Policy, Request
from harness.session import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.bisection.answer import Answer
    from harness.events import Reporter
    from harness.session import Session
    from harness.settings import Settings

_LOWER = (">", ">=", "~=", "==")


@frozen
class DeclaredBound:
    """A requirement, and whether it passes with the `lowest` and the `highest` release that it allows.

    `is_true` is None if that could not be judged; `sentence` says why, or what is untrue. `instead` is the requirement
    that is true, "" if none is known.
    """

    requirement: str
    lowest: str
    highest: str
    is_true: bool | None
    sentence: str
    instead: str = ""


def proved_bounds(
    request: Request, requirements: Sequence[str], settings: Settings, reporter: Reporter
) -> tuple[DeclaredBound, ...]:
    """Run the lowest and the highest release of each requirement, the other packages as they resolve with it.

    Without `requirements` they are those that the project or the repro declares with a bound. Raises as `ask` does,
    and `UserMistake` if there is no such requirement, or if no release meets one.
    """
    with open_session(settings, reporter) as session:
        declared = tuple(requirements) or command_of(session, request).repro.dependencies
        texts = tuple(text for text in declared if _has_bound(text))
        if not texts:
            raise UserMistake(
                "no requirement with a bound is declared", hint="name one: --prove 'transformers>=4.51,<5'"
            )
        allowed = {text: _allowed(session, text) for text in texts}

    def proved(text: str, known: Sequence[str] = ()) -> DeclaredBound:
        later = {name_of(other) for other in (*known, text)}
        beside = [other for other in requirements if name_of(other) not in later]
        beside += [other for other in known if name_of(other) != name_of(text)]
        held = evolve(settings, with_=(*settings.with_, *beside))
        return _proved(request, text, *allowed[text], held, reporter)

    bounds = tuple(map(proved, texts))
    # What fails with both releases of a requirement may fail because of another one, whose bound is now known.
    known = [bound.instead for bound in bounds if bound.instead]
    open_ = [bound.requirement for bound in bounds if bound.is_true is None] if known else []
    again = {text: proved(text, known) for text in open_}
    return tuple(again.get(bound.requirement, bound) for bound in bounds)


def _has_bound(text: str) -> bool:
    required_name(text)  # refuses what is no requirement
    return exact_version(text) is None and bool(Requirement(text).specifier)


def _allowed(session: Session, text: str) -> tuple[str, str]:
    """Return the lowest and the highest release that a requirement allows and that can be installed here."""
    specifier, name = Requirement(text).specifier, name_of(text)
    try:
        releases = session.index.releases(name)
    except UnknownProject as error:
        raise UserMistake(f"{text}: {error.message}", hint=error.hint) from error
    target = session.interpreter.target
    versions = [
        str(release.version)
        for release in releases
        if specifier.contains(release.version) and release.left_out_because(target) is None
    ]
    if not versions:
        raise UserMistake(f"no release of {name} that can be installed here meets {text}")
    return versions[0], versions[-1]


def _proved(
    request: Request, text: str, lowest: str, highest: str, settings: Settings, reporter: Reporter
) -> DeclaredBound:
    """Run both ends of a requirement; where one fails, search between them."""
    name, is_range = name_of(text), lowest != highest
    policy = Policy(confirm=1)
    fix = evolve(request, subject=name, depth=Level.RELEASE, policy=evolve(policy, find_fix=True))
    answer = ask(evolve(fix, bad=lowest, good=highest if is_range else None), settings, reporter)
    if answer.status is Status.FIXED and answer.first_good:
        sentence = f"{name} {lowest} fails, and so do all up to {answer.last_bad}"
        return DeclaredBound(text, lowest, highest, False, sentence, _with_lower(text, answer.first_good))
    if answer.status is Status.NOT_FIXED:
        both = f"{name} {lowest} and {highest} both fail" if is_range else f"{name} {lowest}, the only one, fails"
        return DeclaredBound(text, lowest, highest, None, both)
    if answer.status is not Status.NO_FAILURE:
        return DeclaredBound(text, lowest, highest, None, _why(answer))
    if not is_range:
        return DeclaredBound(text, lowest, highest, True, f"{name} {lowest} passes; no other release meets it")
    answer = ask(evolve(fix, good=lowest, bad=highest, policy=policy), settings, reporter)
    # What fails only without the project's own bounds says nothing about this one.
    if answer.status is Status.NO_FAILURE or answer.comparison.lifted:
        return DeclaredBound(text, lowest, highest, True, f"{name} {lowest} and {highest} pass")
    if answer.status is not Status.FOUND or answer.boundary.subject != name or not answer.first_bad:
        return DeclaredBound(text, lowest, highest, None, _why(answer))
    sentence = f"{name} {highest} fails, from {answer.first_bad} on"
    return DeclaredBound(text, lowest, highest, False, sentence, _with_upper(text, answer.first_bad))


def _why(answer: Answer) -> str:
    return answer.sentence.removeprefix("Not sure: ").rstrip(".")


def _with_lower(text: str, version: str) -> str:
    """Return a requirement with another lower bound."""
    parts = Requirement(text).specifier
    upper = [str(part) for part in parts if part.operator not in _LOWER]
    upper += [f"<{_next_of(part.version)}" for part in parts if _is_series(part)]
    return unbounded(text) + ",".join([f">={version}", *sorted(upper)])


def _with_upper(text: str, version: str) -> str:
    """Return a requirement with another upper bound."""
    kept = [part for part in Requirement(text).specifier if part.operator not in ("<", "<=")]
    lower = [f">={part.version.removesuffix('.*')}" if _is_series(part) else str(part) for part in kept]
    return unbounded(text) + ",".join([*sorted(lower, reverse=True), f"<{version}"])


def _is_series(part: Specifier) -> bool:
    return part.operator == "~=" or (part.operator == "==" and part.version.endswith(".*"))


def _next_of(version: str) -> str:
    """The first version that is not in a series: 1.5 for `~=1.4.2`, 2 for `~=1.4` and `==1.*`."""
    *parts, last = version.split(".")[:-1]
    return ".".join([*parts, str(int(last) + 1)])
