"""The two releases that a question starts from: those that the user gives, else those of the repro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import UserMistake
from harness.request.parsing import version_of

if TYPE_CHECKING:
    from harness.model.repro import Bounds
    from harness.request.question import Question


def tells_of_a_fix(question: Question, bounds: Bounds) -> bool:
    """Whether the user gives no ends and the repro's bad end is older than its good one."""
    if question.find_fix or question.good is not None or question.bad is not None:
        return False
    good, bad = bounds.good, bounds.bad
    return good is not None and bad is not None and version_of(bad) < version_of(good)


def ends_of(question: Question, bounds: Bounds, choices: list[str]) -> tuple[str | None, str | None]:
    """Return the good and the bad end: those of the user, else the repro's bounds if they are in the right order.

    Adds a sentence to `choices` for each bound used. None for an end that the search must find.
    """
    good, bad = question.good, question.bad
    if question.find_fix:
        if bad is None:
            bad = bounds.bad
            if bad is not None:
                choices.append(f"bad end: {bad} (by the repro; --bad changes it)")
        if good is None and bounds.good is not None and bad is not None and version_of(bounds.good) > version_of(bad):
            good = bounds.good
            choices.append(f"good end: {good} (by the repro; --good changes it)")
        return good, bad
    if good is None and bounds.good is not None and (bad is None or version_of(bounds.good) < version_of(bad)):
        good = bounds.good
        choices.append(f"good end: {good} (by the repro; --good changes it)")
    if bad is None and bounds.bad is not None and (good is None or version_of(good) < version_of(bounds.bad)):
        bad = bounds.bad
        choices.append(f"bad end: {bad} (by the repro; --bad changes it)")
    return good, bad


def check_order(question: Question, good: str | None, bad: str | None) -> None:
    """Raise `UserMistake` if the two ends are the wrong way round."""
    if good is None or bad is None:
        return
    if version_of(good) == version_of(bad):
        raise UserMistake(f"--good and --bad are both {good}; there is nothing between them")
    if question.find_fix and version_of(good) < version_of(bad):
        raise UserMistake(
            f"--good {good} is older than --bad {bad}, so there is no fix to find between them",
            hint="leave out --find-fix to find what broke it",
        )
    if not question.find_fix and version_of(good) > version_of(bad):
        raise UserMistake(
            f"--good {good} is newer than --bad {bad}",
            hint="swap them, or add --find-fix to find the release that fixed it",
        )
