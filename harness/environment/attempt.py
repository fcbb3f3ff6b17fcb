"""One request to uv's resolver: a combination, and how it was loosened to get an answer."""

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
    """What to request from uv.

    `later` maps some projects to later dates; `floors` are the oldest versions that projects may get; `undated` are
    projects to which uv's own date limit can't be applied, and `caps` the constraints that replace it; with
    `ignores_dates` only the caps limit what uv may choose.
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
        """Options that limit what uv may choose from."""
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
    """The combination with looser holds: first to older releases, one hold alone and then all, then without holds."""
    holds = combination.holds
    below = tuple(hold.replace("==", "<=") for hold in holds)
    for instead in (below, ("",) * len(holds)):
        if len(holds) > 1:  # one hold: "one alone" and "all" are the same
            for i in range(len(holds)):
                yield evolve(combination, holds=tuple(h for h in (*holds[:i], instead[i], *holds[i + 1 :]) if h))
        yield evolve(combination, holds=tuple(filter(None, instead)))


def project_of(requirement: str) -> str:
    """The normalised name of the project that a requirement is for."""
    return normalized_name(Requirement(requirement).name)


def _held_at_a_release(holds: Sequence[str]) -> frozenset[str]:
    """Projects that are held at one release, whatever its upload time. A range names no release."""
    return frozenset(project_of(hold) for hold in holds if "==" in hold or "<=" in hold)
