"""The package level: finds which of the packages that differ between two locks make the difference.

Packages of the newer side are put into the lock of the older one, the likeliest alone first. What could not be tested
without others is then reverted in the newer environment, where it may run alone. At the end the culprit is reverted in
the newer environment and advanced in the older one.

Packages are exchanged in a lock without the resolver, because many work with versions that their requirements exclude.
If a mixed lock fails, its unmet requirements, read from the installed metadata, say which packages must be exchanged
too.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.requirements import InvalidRequirement, Requirement

from harness.culprit.clues import failure_of
from harness.culprit.edits import versions
from harness.culprit.proofs import Claim, Trials, proved, proved_again
from harness.culprit.ranking import ranked
from harness.culprit.release import can_narrow
from harness.culprit.sides import Side, Sides, exchanged
from harness.culprit.subsets import Candidate, Choices, Fewest, Reduced
from harness.culprit.ties import Ties
from harness.environment.workspace import site_packages
from harness.model import Change, name_of, normalized_name
from harness.model.culprit import Finding, Level, Proof
from harness.model.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.environment import Environment


Needs = Mapping[str, tuple[Requirement, ...]]  # by normalised name


@define
class Distributions:
    """The versions and the requirements of the distributions on one side, by normalised name."""

    versions: Mapping[str, str]
    needs: Needs

    @classmethod
    def of(cls, environment: Environment) -> Distributions:
        """Read the metadata of an environment. Requirements of extras are left out."""
        lock = environment.lock
        versions = {pin.name: pin.version for pin in lock.pins}
        folder = environment.folder
        return cls(versions, _required_in(site_packages(folder), lock.python) if folder is not None else {})


@define
class Required:
    """The packages that can't be exchanged without others, as far as failures have shown.

    `base` is the side that packages are exchanged in, `other` the side they come from.
    """

    base: Distributions
    other: Distributions
    ties: Ties = field(factory=Ties)

    @classmethod
    def between(cls, trials: Trials, sides: Sides) -> Required:
        """For exchanging packages in the older side; nothing is required if an environment can't be built."""
        older, newer = (trials.environment(side) for side in (sides.before, sides.after))
        if older is None or newer is None:
            return cls(Distributions({}, {}), Distributions({}, {}))
        return cls(Distributions.of(older), Distributions.of(newer))

    def reversed(self) -> Required:
        """The same for the other direction.

        Where a newer package failed with an older one, it will fail again when only the other is reverted.
        """
        return Required(self.other, self.base, self.ties.reversed())

    def closed(self, names: Collection[str]) -> frozenset[str]:
        """These packages, and all that are known to be needed with them."""
        return self.ties.closed(names)

    def lacking(self, names: Collection[str]) -> frozenset[str]:
        """What these packages require, directly or indirectly, and `base` does not have at all."""
        absent = self.other.versions.keys() - self.base.versions.keys()
        targets = ((name, normalized_name(one.name)) for name, needs in self.other.needs.items() for one in needs)
        return Ties.of(pair for pair in targets if pair[1] in absent).closed(names).difference(names)

    def learn(self, names: Collection[str]) -> bool:
        """Learn from a failure with these packages exchanged; returns whether any tie is new."""
        known, moved, wider = self.ties, frozenset[str](), self.ties.closed(names)
        while moved != wider:
            moved = wider
            self.ties = self.ties.and_also(self._unmet(moved))
            wider = self.ties.closed(names)
        return self.ties != known

    def _unmet(self, moved: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Pairs "exchanging the first requires exchanging the second"."""
        for name in self.base.versions.keys() | self.other.versions.keys():
            side = self.other if name in moved else self.base
            for required in side.needs.get(name, ()):
                target = normalized_name(required.name)
                source, rest = (self.other, self.base) if target in moved else (self.base, self.other)
                if _meets(source, target, required) or not _meets(rest, target, required):
                    continue
                if name in moved:
                    yield name, target
                elif target in moved and self.base.versions.get(name) != self.other.versions.get(name):
                    yield target, name


def _meets(side: Distributions, name: str, required: Requirement) -> bool:
    version = side.versions.get(name)
    return version is not None and required.specifier.contains(version, prereleases=True)


def _required_in(packages: Path, python: str) -> dict[str, tuple[Requirement, ...]]:
    found: dict[str, tuple[Requirement, ...]] = {}
    context = {"extra": "", "python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    for distribution in importlib.metadata.distributions(path=[str(packages)]):
        name = distribution.metadata["Name"]
        if name:
            texts = distribution.requires or []
            found[normalized_name(name)] = tuple(one for text in texts if (one := _applying(text, context)) is not None)
    return found


def _applying(text: str, context: Mapping[str, str]) -> Requirement | None:
    """Parse a requirement; None if it is for another platform or Python, for an extra, or invalid."""
    try:
        required = Requirement(text)
        return required if required.marker is None or required.marker.evaluate(dict(context)) else None
    except (InvalidRequirement, ValueError):
        return None


_ALONE = 8  # packages that are tried alone first
_LESS_LIKELY = 0.7  # weight relative to the previous package in the ranking


def find_package(trials: Trials, sides: Sides, until: Level = Level.PACKAGE) -> tuple[Finding, Sides]:
    """Find the packages that make the difference; returns them with sides that differ only in them.

    If `until` is the file level or deeper, the runs that prove it are traced; if several packages differed, only if
    they are the sides between which lines are searched.
    """
    changes = {change.name: change for change in sides.before.lock.diff(sides.after.lock)}
    if len(changes) == 1:
        trials.begin(Level.PACKAGE, f"only {listed(changes)} differs")
        return _only_one(trials, sides, tuple(changes.values()), until), sides
    trials = trials.for_mixtures(sides)
    trials.begin(Level.PACKAGE, f"{len(changes)} packages differ: which one makes the difference?")
    advancing = Required.between(trials, sides)
    search = _fewest(trials, sides, advancing, is_advanced=True)
    spent, nearer = [search], evolve(sides, after=_shown(sides.after, search))
    reverting = advancing.reversed()
    if len(search.units) > 1 and (search.unproven or search.unresolved):
        # Some could not be tested without others. Which of them must be reverted to remove the difference?
        apart = _fewest(trials, sides, reverting, is_advanced=False, along=changes.keys() - search.units)
        spent.append(apart)
        nearer = evolve(nearer, before=_shown(sides.before, apart))
        search = apart if apart.shown is not None else search
    back, forward = _both_ways(trials, sides, nearer, reverting, until)
    notes = search.notes
    if back.verdict is sides.after.verdict:
        found = search.units
        search = _fewest(trials, sides, reverting, is_advanced=False, along=found)
        spent.append(search)
        alone, more = (listed(sorted(units)) for units in (found, search.units))
        notes = (f"{alone} makes the difference alone, and so does {more}: both must be reverted",)
        lock = exchanged(sides.before.lock, sides.after.lock, found | search.units)
        both = trials.proof(f"with {alone} and {more}", trials.installed(sides.after, lock), sides.after.verdict)
        shown = both.observation if both.holds else None
        nearer = evolve(sides, after=Side(lock, sides.after.verdict, shown)) if shown is not None else sides
        back, forward = _both_ways(trials, sides, nearer, reverting, until)
    finding = Finding(
        Level.PACKAGE,
        nearer.before.lock.diff(nearer.after.lock),
        proofs=(back, forward),
        candidates=len(changes),
        runs=sum(one.runs for one in spent) + 1,
        unresolved=sum(one.unresolved for one in spent),
        is_minimal=search.is_minimal,
        notes=notes,
    )
    return finding, nearer


def _shown(side: Side, search: Reduced) -> Side:
    """What a search has shown, with the verdict of a side; that side if no smaller set was enough."""
    run = search.shown
    return Side(run.lock, side.verdict, run) if run is not None and run.lock is not None else side


def _fewest(
    trials: Trials, sides: Sides, required: Required, *, is_advanced: bool, along: Collection[str] = ()
) -> Reduced:
    """Find the fewest packages that, exchanged in the lock of one side, lead to the verdict of the other side.

    They are advanced in the older side, or else reverted in the newer one; those in `along` are exchanged in each run.
    Failures teach `required` which packages need each other. Packages that the side lacks are usually only required by
    others, so they come last.
    """
    base, other = (sides.before, sides.after) if is_advanced else (sides.after, sides.before)
    changes = {one.name: one for one in sides.before.lock.diff(sides.after.lock) if one.name not in along}
    raised, scope = failure_of(sides), trials.scope
    asked = [name for name in map(name_of, scope.repro.dependencies) if name != scope.subject]
    order = ranked(changes, tuple(raised.chain()) if raised is not None else (), "", asked)
    order = tuple(sorted(order, key=lambda name: not base.lock.version_of(name)))

    def label_of(names: Candidate) -> str:
        if is_advanced:
            return f"with only {listed(str(changes[name]) for name in sorted(names))}"
        return f"reverted: {listed(sorted(names))}"

    def closed(names: Candidate) -> Candidate:
        return required.closed(names).intersection(changes)

    choices = Choices(
        {name: _LESS_LIKELY**rank for rank, name in enumerate(order)},
        lambda names: trials.installed(base, exchanged(base.lock, other.lock, names.union(along))),
        label_of,
        closed=closed,
        alone=closed,
        learn=lambda names, _: required.learn(names.union(along)),
        parts=[frozenset({name}) for name in order[:_ALONE] if base.lock.version_of(name)],
    )
    reduced = Fewest(trials, other.verdict, choices).run()
    trials.tally.seen.update(run.key for _, run in reduced.told.values())  # none of them can prove a claim later
    return reduced


def _both_ways(trials: Trials, sides: Sides, nearer: Sides, reverting: Required, until: Level) -> tuple[Proof, Proof]:
    """Prove the culprit: reverted in the newer environment, and advanced in the older one as the search ran it."""
    changes = nearer.before.lock.diff(nearer.after.lock)
    names = [change.name for change in changes]
    needed = reverting.lacking(names)
    lock = exchanged(sides.after.lock, sides.before.lock, (*names, *needed))
    reverted = [change for change in sides.before.lock.diff(sides.after.lock) if change.name in names]
    back = f"the {sides.after.verdict.value} environment with {versions(reverted, newer=False)}"
    if needed:
        back += f", and with {listed(sorted(needed))}, which it can't run without"
    forth = f"the {sides.before.verdict.value} environment with {versions(changes, newer=True)}"
    along = [change.name for change in sides.before.lock.diff(nearer.before.lock)]
    if along:
        forth += f", and with {listed(along)} changed, which it can't run without"
    claims = (
        Claim(back, trials.installed(sides.after, lock), sides.before.verdict),
        Claim(forth, trials.installed(sides.before, nearer.after.lock), sides.after.verdict),
    )
    traced_to = Level.PACKAGE if can_narrow(trials, changes) else until
    return proved(trials, nearer, Finding(Level.PACKAGE, changes), claims, traced_to)


def _only_one(trials: Trials, sides: Sides, changes: tuple[Change, ...], until: Level) -> Finding:
    """The finding if the locks differ in one package: another run of each side is the proof."""
    back = f"the {sides.after.verdict.value} environment with {versions(changes, newer=False)}"
    forward = f"the {sides.before.verdict.value} environment with {versions(changes, newer=True)}"
    finding = Finding(Level.PACKAGE, changes, runs=2)
    return evolve(finding, proofs=proved_again(trials, sides, finding, (back, forward), until))
