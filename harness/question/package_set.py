"""A set of packages, or the snapshot of an end, beside which some are put at other versions.

Nothing else makes such probes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.environment.attempt import is_source
from harness.model import Combination, Lock, Repro, is_prerelease, name_of
from harness.model.requirements import at_least, unbounded
from harness.probing import Probe
from harness.question.ends import End

if TYPE_CHECKING:
    from pathlib import Path

    from harness.probing.probe import Probing


Versions = Mapping[str, str | None]


class Way(enum.Enum):
    """What stands beside a package at another version. A question has one way, and keeps it."""

    NEAR = enum.auto()  # as in the lock, if possible
    DAY = enum.auto()  # the newest of a day, or of today
    OWN_DAY = enum.auto()  # the newest of the day of the package's release
    IN_PLACE = enum.auto()  # as in the lock, whatever its requirements say


@frozen(kw_only=True)
class PackageSet:
    """Packages in which `repro` runs, and how they are resolved again: `combination` is what is required, and the day.

    `lock` has their versions, None if nothing is kept. `days` are those of releases by package and version, for
    `Way.OWN_DAY`.
    """

    repro: Repro
    combination: Combination
    way: Way
    lock: Lock | None
    days: Mapping[tuple[str, str | None], datetime] = field(factory=dict)

    @property
    def requirements(self) -> tuple[str, ...]:
        """What is required."""
        return self.combination.requirements

    @property
    def as_of(self) -> datetime | None:
        """The day (UTC), None for today."""
        return self.combination.as_of

    @property
    def sources(self) -> frozenset[str]:
        """The packages that had to be built.

        Their other releases may be built too, or no search could tell which of those between the ends is the first bad
        one.
        """
        pins = self.lock.pins if self.lock is not None else ()
        return frozenset(pin.name for pin in pins if is_source(pin.wheel))

    def at(
        self,
        prober: Probing,
        changes: Versions,
        attempt: int = 0,
        *,
        held: Versions | None = None,
    ) -> Probe:
        """Return the probe with these packages at other versions; None leaves a package out.

        Packages that conflict with these versions change too, unless it is done in place. Those in `held` are changed
        as well if they can be resolved together; else one of them is left out, or all of them.
        """
        rest = {name: version for name, version in (held or {}).items() if name not in changes}
        probe = self._probe({**rest, **changes}, attempt)
        for left_out in (*([name] for name in rest), list(rest)) if rest else ():
            if prober.resolve(probe).lock is not None:
                break
            fewer = {name: version for name, version in rest.items() if name not in left_out}
            probe = self._probe({**fewer, **changes}, attempt)
        return self._in_place(prober, probe) if self.way is Way.IN_PLACE else probe

    def _probe(self, versions: Versions, attempt: int) -> Probe:
        near = self.lock if self.way in (Way.NEAR, Way.IN_PLACE) else None
        combination = self._combination(versions, near)
        if near is not None and self.way is Way.NEAR:
            combination = evolve(combination, prereleases=(*prereleases_of(near), *combination.prereleases))
        if self.way in (Way.NEAR, Way.DAY):
            combination = evolve(combination, from_source=(*combination.from_source, *self.sources))
        return Probe(self.repro, combination, near, attempt)

    def _combination(self, versions: Versions, near: Lock | None) -> Combination:
        """Return what is required with some packages at other versions.

        What is required of such a package keeps its place and its extras.
        """
        combination = evolve(self.combination, near=near.id if near is not None else None)
        if self.way is Way.OWN_DAY:
            day = next((self.days[release] for release in versions.items() if release in self.days), None)
            combination = evolve(combination, as_of=day)
        if self.way is Way.IN_PLACE:  # only the package itself, and what it requires
            holds = tuple(text for text in combination.holds if name_of(text) not in versions)
            combination = evolve(combination, requirements=(), holds=holds)
        pinned = {name: version for name, version in versions.items() if version is not None}
        texts: list[str] = []
        for text in combination.requirements:
            if (name := name_of(text)) not in versions:
                texts.append(text)
            elif name in pinned:
                texts.append(f"{unbounded(text)}=={pinned[name]}")
        names = set(map(name_of, texts))
        texts += [f"{name}=={version}" for name, version in pinned.items() if name not in names]
        prereleases = tuple(name for name, version in pinned.items() if is_prerelease(version))
        return evolve(combination, requirements=tuple(texts), prereleases=prereleases)

    def _in_place(self, prober: Probing, probe: Probe) -> Probe:
        """Exchange what the resolver chose for a probe in the lock."""
        chosen = prober.resolve(probe).lock
        if chosen is None or self.lock is None:
            return probe
        moved = [change.name for change in self.lock.diff(chosen) if change.after is not None]
        requirements = (*self.requirements, *probe.combination.requirements)
        combination = evolve(probe.combination, requirements=requirements, near=None)
        return evolve(probe, combination=combination, near=None, lock=self.lock.exchanging(chosen, moved))


@frozen(kw_only=True)
class Snapshot(PackageSet):
    """The packages of one end: a lock, and how it is resolved again.

    `notes` are sentences about how it was made, `changed` those of them about packages that differ from what the end
    says. `inside` is the interpreter of an existing environment that is the end, to run it as it is. `lifted` maps the
    project's requirements whose lower bounds were not kept to what is left of them. `apart` are packages of the end
    that only conda has, with their versions.
    """

    end: End
    lock: Lock
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    inside: Path | None = None
    lifted: Mapping[str, str] = field(factory=dict)
    apart: Mapping[str, str] = field(factory=dict)

    @property
    def until(self) -> datetime | None:
        """The day of these packages: that of the end, or the upload of the newest one for which the index tells it."""
        uploads = (datetime.fromisoformat(pin.uploaded) for pin in self.lock.pins if pin.uploaded)
        return self.as_of or max(uploads, default=None)

    def lifting(self, other: Snapshot) -> Snapshot:
        """Return this snapshot, to be changed without the bounds that an older one could not keep.

        The versions of that one take their place, or a resolver would go back to any release that has no limits.
        """
        left = {text: at_least(bare, other.lock.version_of(name_of(text))) for text, bare in other.lifted.items()}
        requirements = tuple(left.get(text, text) for text in self.requirements)
        return evolve(self, combination=evolve(self.combination, requirements=requirements))

    def itself(self, repro: Repro | None = None) -> Probe:
        """Return the probe of this snapshot unchanged."""
        return Probe(repro or self.repro, self.combination, lock=self.lock, inside=self.inside)

    def constrained(self, prober: Probing, constraints: Sequence[str]) -> Probe:
        """Return the probe of this snapshot with additional constraints."""
        probe = self.at(prober, {})
        requirements = (*probe.combination.requirements, *constraints)
        return evolve(probe, combination=evolve(probe.combination, requirements=requirements))


def prereleases_of(lock: Lock) -> tuple[str, ...]:
    """Return the names of the packages that a lock has at a pre-release."""
    return tuple(pin.name for pin in lock.pins if is_prerelease(pin.version))
