"""The package level: finds which of the packages that differ between two locks make the difference.

First, some packages of the older lock are moved to their newer versions, and the resolver keeps the others where
possible. Packages that moved together because of their requirements are then exchanged in the lock one by one, without
the resolver. At the end the culprit is reverted in the newer environment.

Packages are exchanged without the resolver, because many work with versions that their requirements exclude. If a mixed
lock fails, its unmet requirements, read from the installed metadata, say which packages must be exchanged too.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.culprit.clues import failure_of
from harness.culprit.edits import versions
from harness.culprit.pursuit import Candidate, Pursuit, Reduced
from harness.culprit.ranking import ranked
from harness.culprit.release import can_narrow
from harness.culprit.side_proofs import proved, proved_again
from harness.culprit.sides import Side, Sides, exchanged
from harness.culprit.ties import Ties
from harness.culprit.trials import Claim, Trials
from harness.environment.workspace import site_packages
from harness.model import Change, Lock, Verdict, name_of, normalized_name
from harness.model.culprit import Finding, Level, Proof
from harness.model.text import listed
from harness.probing import Probe

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

    def closed(self, names: Collection[str]) -> frozenset[str]:
        """These packages, and all that are known to be needed with them."""
        return self.ties.closed(names)

    def lacking(self, names: Collection[str]) -> frozenset[str]:
        """What these packages require, directly or indirectly, and `base` does not have at all."""
        found: set[str] = set()
        left = list(names)
        while left:
            for required in self.other.needs.get(left.pop(), ()):
                target = normalized_name(required.name)
                if target in self.other.versions and target not in self.base.versions and target not in found:
                    found.add(target)
                    left.append(target)
        return frozenset(found)

    def learn(self, names: Collection[str]) -> bool:
        """Learn from a failure with these packages exchanged; returns whether any tie is new."""
        found: set[tuple[str, str]] = set()
        moved = self.ties.closed(names)
        while True:
            fresh = set(self._unmet(moved)) - found
            if not fresh:
                break
            found |= fresh
            moved = self.ties.and_also(found).closed(names)
        is_new = any(other not in self.ties.needs.get(one, ()) for one, other in found)
        self.ties = self.ties.and_also(found)
        return is_new

    def _unmet(self, moved: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Pairs "exchanging the first requires exchanging the second"."""
        for name in self.base.versions.keys() | self.other.versions.keys():
            side = self.other if name in moved else self.base
            if name not in side.versions:
                continue
            for required in side.needs.get(name, ()):
                target = normalized_name(required.name)
                source, rest = (self.other, self.base) if target in moved else (self.base, self.other)
                if _meets(source, target, required) or not _meets(rest, target, required):
                    continue
                if name in moved:
                    yield name, target
                elif target in moved and self._differs(name):
                    yield target, name

    def _differs(self, name: str) -> bool:
        return self.base.versions.get(name) != self.other.versions.get(name)


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


_MOST = 16
_ALONE = 16  # packages that are tried alone first
_LESS_LIKELY = 0.7  # weight relative to the previous package in the ranking


@frozen
class _Known:
    """The narrowed sides, the last search that narrowed them, and all searches.

    `ties` says which packages can't be moved to the newer side without others, as far as failures have shown.
    """

    sides: Sides
    search: Reduced | None = None
    spent: tuple[Reduced, ...] = ()
    ties: Ties = field(factory=Ties)

    @property
    def changes(self) -> dict[str, Change]:
        """The packages that still differ, by name."""
        return {change.name: change for change in self.sides.before.lock.diff(self.sides.after.lock)}

    def narrowed(self, search: Reduced, sides: Sides | None) -> _Known:
        """The state after another search; `sides` is None if no smaller set was sufficient."""
        return evolve(self, sides=sides or self.sides, search=search, spent=(*self.spent, search))


def find_package(trials: Trials, sides: Sides, until: Level = Level.PACKAGE) -> tuple[Finding, Sides]:
    """Find the packages that make the difference; returns them with sides that differ only in them.

    If `until` is the file level or deeper, the runs that prove it are traced; if several packages differed, only if
    they are the sides between which lines are searched.
    """
    known = _Known(sides)
    changes = known.changes
    if len(changes) == 1:
        trials.begin(Level.PACKAGE, f"only {listed(changes)} differs")
        return _only_one(trials, sides, tuple(changes.values()), until), sides
    trials.begin(Level.PACKAGE, f"{len(changes)} packages differ: which one makes the difference?")
    known = _moved_by_resolver(trials, known)
    strangers = _strangers(known, changes)
    known = _apart_from_needs(trials, _without_ties(trials, known))
    names = tuple(known.changes)
    back, forward = _both_ways(trials, sides, known, until)
    notes = strangers
    if back.verdict is sides.after.verdict:
        known, more = _with_all_that_bring_it(trials, sides, known)
        notes = (
            *notes,
            f"{listed(names)} makes the difference alone, and so does {listed(more)}: both must be reverted",
        )
        back, forward = _both_ways(trials, sides, known, until)
    search = known.search
    finding = Finding(
        Level.PACKAGE,
        tuple(known.changes.values()),
        proofs=(back, forward),
        candidates=len(changes),
        runs=sum(search.runs for search in known.spent) + 1,
        unresolved=sum(search.unresolved for search in known.spent),
        is_minimal=search is None or search.is_minimal,
        notes=(*(trials.notes(search) if search is not None else ()), *notes),
    )
    return finding, known.sides


def _moved_by_resolver(trials: Trials, known: _Known) -> _Known:
    """Find the fewest packages that make the difference, together with all that the resolver moves with them."""
    sides, changes = known.sides, known.changes
    movable = {name: change for name, change in changes.items() if change.after is not None}
    if len(movable) < 2:
        return known

    def probe_of(names: Candidate) -> Probe:
        return trials.moved(sides, [changes[name] for name in names])

    search = _alone_first(
        trials, sides.after.verdict, movable, sides, probe_of, lambda names: f"with {_steps(names, changes)}"
    )
    reduced = search.run()
    return known.narrowed(reduced, _advanced(sides, reduced))


def _without_ties(trials: Trials, known: _Known) -> _Known:
    """Find which of the packages that moved together make the difference, by exchanging them without the resolver."""
    sides, changes, search = known.sides, known.changes, known.search
    if len(changes) == 1 or (search is not None and search.units == changes.keys() and not search.unproven):
        return known

    required = _required(trials, sides.before, sides.after)
    reduced = _exchanged(trials, sides, sides.before, required, lambda names: f"with only {_steps(names, changes)}")
    return evolve(known.narrowed(reduced, _advanced(sides, reduced)), ties=required.ties)


def _apart_from_needs(trials: Trials, known: _Known) -> _Known:
    """If packages could not be tested without others, find which of them must be reverted to remove the difference."""
    sides, changes, search = known.sides, known.changes, known.search
    if len(changes) == 1 or search is None or not (search.unproven or search.unresolved):
        return known

    # Where a newer package failed with an older one, it will fail again when only the other is reverted.
    required = evolve(_required(trials, sides.after, sides.before), ties=known.ties.reversed())
    reduced = _exchanged(trials, sides, sides.after, required, lambda names: f"reverted: {listed(sorted(names))}")
    if reduced.shown is None or reduced.shown.lock is None:
        return evolve(known, spent=(*known.spent, reduced))
    before = Side(reduced.shown.lock, sides.before.verdict, reduced.shown)
    return known.narrowed(reduced, evolve(sides, before=before))


def _exchanged(
    trials: Trials, sides: Sides, base: Side, required: Required, label_of: Callable[[Candidate], str]
) -> Reduced:
    """Find the fewest packages that, exchanged in the lock of one side, lead to the verdict of the other side.

    Failures teach `required` which packages need each other. Packages that the older side lacks are usually only
    required by others, so they are not tried alone while others are suspected.
    """
    changes = {change.name: change for change in sides.before.lock.diff(sides.after.lock)}
    other = sides.after if base is sides.before else sides.before
    search = _alone_first(
        trials,
        other.verdict,
        changes,
        sides,
        lambda names: trials.installed(base, exchanged(base.lock, other.lock, names)),
        label_of,
    )
    return evolve(
        search,
        closed=lambda names: required.closed(names).intersection(changes),
        learn=lambda names, _: required.learn(names),
        serving=[name for name, change in changes.items() if change.before is None and base is sides.before],
        parts=(),
    ).run()


def _alone_first(
    trials: Trials,
    flipped: Verdict,
    changes: dict[str, Change],
    sides: Sides,
    probe_of: Callable[[Candidate], Probe],
    label_of: Callable[[Candidate], str],
) -> Pursuit:
    """A search for the fewest packages; the likeliest are first tried alone."""
    raised, scope = failure_of(sides), trials.scope
    asked = [name for name in map(name_of, scope.repro.dependencies) if name != scope.subject]
    order = ranked(changes, tuple(raised.chain()) if raised is not None else (), "", asked)
    return Pursuit(
        trials=trials,
        flipped=flipped,
        weights={name: _LESS_LIKELY**rank for rank, name in enumerate(order)},
        probe_of=probe_of,
        label_of=label_of,
        most=trials.most,
        judge=trials.searched,
        parts=[frozenset({name}) for name in order[:_ALONE]] if len(order) > 1 else (),
    )


def _required(trials: Trials, base: Side, other: Side) -> Required:
    """The requirements between the packages of both sides; empty if an environment can't be built."""
    here, there = (trials.environment(side) for side in (base, other))
    if here is None or there is None:
        return Required(Distributions({}, {}), Distributions({}, {}))
    return Required(Distributions.of(here), Distributions.of(there))


def _with_all_that_bring_it(trials: Trials, sides: Sides, known: _Known) -> tuple[_Known, tuple[str, ...]]:
    """Find what else must be reverted, because more than one package makes the difference alone.

    Returns the new state and the names of the additional packages.
    """
    found = frozenset(known.changes)
    others = {change.name: change for change in sides.before.lock.diff(sides.after.lock) if change.name not in found}

    def probe_of(names: Candidate) -> Probe:
        return trials.installed(sides.after, exchanged(sides.after.lock, sides.before.lock, found | names))

    search = _alone_first(
        trials,
        sides.before.verdict,
        others,
        sides,
        probe_of,
        lambda names: f"reverted: {listed(sorted(found | names))}",
    )
    reduced = evolve(search, most=_MOST).run()
    lock = exchanged(sides.before.lock, sides.after.lock, found | reduced.units)
    shown = trials.proof(
        f"with {listed(sorted(found | reduced.units))}", trials.installed(sides.after, lock), sides.after.verdict
    )
    wider = sides
    if shown.holds and shown.observation is not None:
        wider = evolve(sides, after=Side(lock, sides.after.verdict, shown.observation))
    return known.narrowed(reduced, wider), tuple(sorted(reduced.units))


def _advanced(sides: Sides, reduced: Reduced) -> Sides | None:
    """The older side, and as the newer one what a search has shown; None if no smaller set was sufficient."""
    if reduced.shown is None or reduced.shown.lock is None:
        return None
    return evolve(sides, after=Side(reduced.shown.lock, sides.after.verdict, reduced.shown))


def _both_ways(trials: Trials, sides: Sides, known: _Known, until: Level) -> tuple[Proof, Proof]:
    """Prove the culprit: reverted in the newer environment, and advanced in the older one as the search ran it."""
    names = tuple(known.changes)
    needed = _required(trials, sides.after, sides.before).lacking(names).difference(names)
    lock: Lock = exchanged(sides.after.lock, sides.before.lock, (*names, *needed))
    reverted = [change for change in sides.before.lock.diff(sides.after.lock) if change.name in names]
    back = f"the {sides.after.verdict.value} environment with {versions(reverted, newer=False)}"
    if needed:
        back += f", and with {listed(sorted(needed))}, which it can't run without"
    forth = f"the {sides.before.verdict.value} environment with {versions(known.changes.values(), newer=True)}"
    along = [change.name for change in sides.before.lock.diff(known.sides.before.lock)]
    if along:
        forth += f", and with {listed(along)} changed, which it can't run without"
    claims = (
        Claim(back, trials.installed(sides.after, lock), sides.before.verdict),
        Claim(forth, trials.installed(sides.before, known.sides.after.lock), sides.after.verdict),
    )
    changes = tuple(known.changes.values())
    traced_to = Level.PACKAGE if can_narrow(trials, changes) else until
    return proved(trials, known.sides, Finding(Level.PACKAGE, changes), claims, traced_to)


def _only_one(trials: Trials, sides: Sides, changes: tuple[Change, ...], until: Level) -> Finding:
    """The finding if the locks differ in one package: another run of each side is the proof."""
    back = f"the {sides.after.verdict.value} environment with {versions(changes, newer=False)}"
    forward = f"the {sides.before.verdict.value} environment with {versions(changes, newer=True)}"
    finding = Finding(Level.PACKAGE, changes, runs=2)
    return evolve(finding, proofs=proved_again(trials, sides, finding, (back, forward), until))


def _steps(names: Candidate, changes: dict[str, Change]) -> str:
    return listed(str(changes[name]) for name in sorted(names))


def _strangers(known: _Known, changes: dict[str, Change]) -> tuple[str, ...]:
    """Notes on packages that the resolver moved to a version that neither side has."""
    return tuple(
        f"{change} changed too, to a version that neither side has"
        for change in known.changes.values()
        if change.name not in changes or change.after != changes[change.name].after
    )
