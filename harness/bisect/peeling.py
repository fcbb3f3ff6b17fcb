"""A shortcut to the packages that must be held back: follow the names in the failure from culprit to culprit.

A failure usually names the package that it is about. With that package held back to a release without the message,
the tests pass or fail with the message of the next culprit. The result is used only if the tests pass at the end;
otherwise the general search decides. A message can also disappear because an old release fails differently, so a
package is only called a culprit once its boundary is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.bisect.boundary import find_change_of_message
from harness.bisect.held_back import named_in
from harness.bisect.standing import Standing
from harness.model import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.bisect.culprits import Search
    from harness.bisect.group_questions import GroupQuestion

_DEPTH = 3
_SUSPECTS = 2


def peeled(search: Search, failing: Callable[[Observation], GroupQuestion | None]) -> dict[str, str | None] | None:
    """Return the versions at which packages must be held back for the group to pass; None if the names don't show them.

    `failing` returns the question for a run that fails differently from the group.
    """
    held: dict[str, str | None] = {}
    question = search.question
    for _ in range(_DEPTH):
        suspects = [name for name in named_in(question.exceptions, search.order) if name not in held][:_SUSPECTS]
        step = _step(search, question, suspects, held)
        if step is None:
            return None
        name, version, run = step
        held[name] = version
        if search.question.stand(run).standing is Standing.PASSES:
            return held
        following = failing(run)
        if following is None:
            return None
        question = following
    return None


def _step(
    search: Search, question: GroupQuestion, suspects: Sequence[str], held: dict[str, str | None]
) -> tuple[str, str | None, Observation] | None:
    """Return the first suspect whose older releases don't have the current failure.

    Returns it with a version and the run of that version: the good end's if the tests pass with it, else the newest
    without the failure. None if there is no such suspect.
    """
    for name in suspects:
        before = search.units[name].before
        probe = search.bad.near_versions({name: before}, {**search.held, **held}, search.repro, search.means.prober)
        run = search.means.observe(f"held back: {name} {before or '(absent)'}", probe, search.question.stand)
        if search.question.stand(run).standing is Standing.PASSES:
            return name, before, run
        if question.stand(run).standing is Standing.FAILS or not run.outcome.ran:
            continue
        found = find_change_of_message(
            search.means, search.bad, search.units[name], question.stand, search.repro, {**search.held, **held}
        )
        if found is not None:
            return name, found[0], found[1]
    return None


def narrowed(search: Search, versions: dict[str, str | None]) -> Search:
    """Return the search with each change starting at the version in `versions`, if it has one."""
    units = {
        name: evolve(change, before=versions[name]) if versions.get(name) else change
        for name, change in search.units.items()
    }
    return evolve(search, units=units)
