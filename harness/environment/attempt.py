"""One question to uv's resolver: a combination with what was loosened or added to get an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement

from harness.model import Combination, normalized_name
from harness.model.combination import ANY_SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime


@frozen
class Attempt:
    """A combination as uv is asked for it.

    `later` has dates of their own for some projects; `floors` the oldest version that a project may get; `undated`
    names the projects that uv's cap by date can't be left to, `caps` are the constraints that take its place;
    `ignores_dates` asks for what there is today, but for the caps.
    """

    combination: Combination
    later: Mapping[str, datetime] = field(factory=dict)
    floors: Mapping[str, str] = field(factory=dict)
    undated: frozenset[str] = frozenset()
    caps: tuple[str, ...] = ()
    ignores_dates: bool = False

    @property
    def constraints(self) -> list[str]:
        """Constraint lines."""
        floors = [f"{project}>={version}" for project, version in sorted(self.floors.items())]
        held = _held_at_a_release(self.combination.holds)
        return [*self.combination.holds, *floors, *(cap for cap in self.caps if project_of(cap) not in held)]

    @property
    def options(self) -> Iterator[str]:
        """Options of uv that say what it may choose from."""
        combination = self.combination
        for project in combination.from_source:
            if project != ANY_SOURCE:
                yield from ("--no-binary", project)
        if combination.as_of is not None and not self.ignores_dates:
            yield from ("--exclude-newer", combination.as_of.isoformat())
            dates = {project: date.isoformat() for project, date in self.later.items()}
            dates |= dict.fromkeys(self.undated | _held_at_a_release(combination.holds), "false")
            for project, date in sorted(dates.items()):
                yield from ("--exclude-newer-package", f"{project}={date}")
        for project in combination.prereleases:
            yield from ("--prerelease-package", f"{project}=allow")


def looser(combination: Combination) -> Iterator[Combination]:
    """The combination with its holds loosened to the releases below, one alone and all; then with holds dropped."""
    holds = combination.holds
    below = tuple(hold.replace("==", "<=") for hold in holds)
    for instead in (below, ("",) * len(holds)):
        if len(holds) > 1:  # one alone is all of them
            for i in range(len(holds)):
                yield evolve(combination, holds=tuple(h for h in (*holds[:i], instead[i], *holds[i + 1 :]) if h))
        yield evolve(combination, holds=tuple(filter(None, instead)))


def project_of(requirement: str) -> str:
    """The normalised name of the project that a requirement is for."""
    return normalized_name(Requirement(requirement).name)


def _held_at_a_release(holds: Sequence[str]) -> frozenset[str]:
    """Projects that are held at a release, whenever that was uploaded; a range has no release to hold at."""
    return frozenset(project_of(hold) for hold in holds if "==" in hold or "<=" in hold)
