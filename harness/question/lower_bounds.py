"""The lower bounds and pins of a project on an earlier day: which of them are newer than the day and are lifted.

They are written by tools that add the newest release as a bound, and say nothing about what worked before. Upper bounds
and exclusions stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.requirements import Requirement

from harness.model import name_of
from harness.model.requirements import exact_version, without_lower_bound
from harness.model.text import listed
from harness.search import fewest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from harness.environment import Index
    from harness.model import Lock
    from harness.question.ends import End


def is_newer(text: str, day: datetime, index: Index) -> bool:
    """Whether a requirement has its first release after a day, as far as the index has upload times.

    Raises `NoNetwork`.
    """
    specifier = Requirement(text).specifier
    fitting = [
        release
        for release in index.known_releases(name_of(text))
        if specifier.contains(release.version, prereleases=True)
    ]
    return bool(fitting) and all(release.uploaded is not None and release.uploaded > day for release in fitting)


@frozen
class Lifting:
    """The requirements of an earlier day without the bounds that could not be kept.

    `lifted` maps each of those to what is left of it; `notes` are sentences about them.
    """

    requirements: tuple[str, ...]
    lifted: Mapping[str, str] = field(factory=dict)
    notes: tuple[str, ...] = ()


def lift_bounds(
    requirements: Sequence[str],
    own: Collection[str],
    day: End,
    index: Index,
    has_solution: Callable[[tuple[str, ...]], bool],
) -> Lifting:
    """Lift the lower bounds and pins that are newer than a day, and the fewest others with which it has no solution.

    Only those in `own`, the project's, are lifted; those of its tests, which stand last, come first. A pinned project
    that did not exist then is left out: a freeze also lists what other packages require today. All are lifted if even
    that is not enough. Raises `NoNetwork`.
    """
    moment = day.moment
    looser = {
        text: bare for text in reversed(requirements) if text in own and (bare := without_lower_bound(text)) != text
    }
    newer = tuple(text for text in looser if moment is not None and is_newer(text, moment, index))
    absent = {text for text in newer if exact_version(text) and not existed(name_of(text), moment, index)}

    def without(others: Collection[str]) -> tuple[str, ...]:
        lifted = {*newer, *others}
        return tuple(looser[text] if text in lifted else text for text in requirements if text not in absent)

    left = tuple(text for text in looser if text not in newer)
    enough = fewest(left, lambda some: has_solution(without(some)))
    others = left if enough is None else enough
    notes = (
        *_not_kept(newer, "newer than that day", day),
        *_not_kept(enough or (), "in conflict with that day's packages", day),
    )
    return Lifting(without(others), {text: looser[text] for text in (*newer, *others)}, notes)


def newer_bounds(requirements: Sequence[str], own: Collection[str], end: End, lock: Lock) -> Lifting:
    """Lift those lower bounds and pins of the project, in `own`, that an end's packages do not meet."""
    lifted: dict[str, str] = {}
    for text in filter(own.__contains__, requirements):
        version, bare = lock.version_of(name_of(text)), without_lower_bound(text)
        if version is not None and not admits(text, version) and admits(bare, version):
            lifted[text] = bare
    left = tuple(lifted.get(text, text) for text in requirements)
    return Lifting(left, lifted, _not_kept(tuple(lifted), "newer than its packages", end))


def admits(text: str, version: str) -> bool:
    """Whether a requirement admits a version, also a pre-release."""
    return Requirement(text).specifier.contains(version, prereleases=True)


def existed(name: str, day: datetime | None, index: Index) -> bool:
    """Whether a project had a release on a day, as far as the index has upload times. Raises `NoNetwork`."""
    dates = [release.uploaded for release in index.known_releases(name) if release.uploaded is not None]
    return not dates or day is None or min(dates) <= day


def _not_kept(bounds: Sequence[str], why: str, day: End) -> tuple[str, ...]:
    verb, they = ("was", "it is") if len(bounds) == 1 else ("were", "they are")
    when = f"as of {day.text}" if day.path is None else f"with {day.text}"
    return (f"{listed(bounds)} {verb} not kept {when}: {they} {why}",) if bounds else ()
