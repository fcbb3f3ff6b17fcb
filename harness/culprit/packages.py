"""The package level: finds which of the packages that differ between two locks make the difference.

Packages are reverted in the newer side, because of two that each break it both must be reverted, while advancing either
one is enough. Advancing them in the older side is the proof.

Packages are exchanged in a lock without the resolver, because many work with versions that their requirements exclude.
If a mixed lock fails, its unmet requirements, read from the installed metadata, say which packages must be exchanged
too.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.requirements import InvalidRequirement, Requirement

from harness.culprit.clues import failure_of
from harness.culprit.edits import Units, versions
from harness.culprit.proofs import Claim, Trials, proved, proved_again
from harness.culprit.ranking import ranked
from harness.culprit.release import can_narrow
from harness.culprit.sides import Side, Sides
from harness.culprit.subsets import Choices, Fewest, Reduced
from harness.culprit.ties import Ties
from harness.environment.workspace import site_packages
from harness.model import Change, Verdict, name_of, normalized_name
from harness.model.culprit import Finding, Level, Proof
from harness.model.text import listed
from harness.probing.probe import environment_with, is_warm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.environment import Environment
    from harness.model import Lock
    from harness.probing import Probe


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
        """For reverting packages in the newer side; nothing is required if an environment can't be built."""
        older, newer = (environment_with(trials.prober, side.lock) for side in (sides.before, sides.after))
        if older is None or newer is None:
            return cls(Distributions({}, {}), Distributions({}, {}))
        return cls(Distributions.of(newer), Distributions.of(older))

    def reversed(self) -> Required:
        """The same for the other direction.

        Where a newer package failed with an older one, it will fail again when only the other is reverted.
        """
        return Required(self.other, self.base, self.ties.reversed())

    def closed(self, names: Collection[str]) -> frozenset[str]:
        """These packages, and all that are known to be needed with them."""
        return self.ties.closed(names)

    def learn(self, names: Collection[str]) -> bool:
        """Learn from a failure with these packages exchanged; returns whether any tie is new.

        What the exchanged packages require comes first. What requires them is tied only if that was not the reason.
        """
        everything = self.base.versions.keys() | self.other.versions.keys()
        return self._learn(names, frozenset()) or self._learn(names, everything)

    def _learn(self, names: Collection[str], requiring: Collection[str]) -> bool:
        known, moved, wider = self.ties, frozenset[str](), self.ties.closed(names)
        while moved != wider:
            moved = wider
            self.ties = self.ties.and_also(self._unmet(moved, moved.union(requiring)))
            wider = self.ties.closed(names)
        return self.ties != known

    def _unmet(self, moved: frozenset[str], requiring: Collection[str]) -> Iterator[tuple[str, str]]:
        """Pairs "exchanging the first requires exchanging the second", from the requirements of some packages."""
        for name in requiring:
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
    requirements: dict[str, tuple[Requirement, ...]] = {}
    context = {"extra": "", "python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    for distribution in importlib.metadata.distributions(path=[str(packages)]):
        name = distribution.metadata["Name"]
        if name:
            texts = distribution.requires or []
            requirements[normalized_name(name)] = tuple(
                requirement for text in texts if (requirement := _applying(text, context)) is not None
            )
    return requirements


def _applying(text: str, context: Mapping[str, str]) -> Requirement | None:
    """Parse a requirement; None if it is for another platform or Python, for an extra, or invalid."""
    try:
        required = Requirement(text)
        return required if required.marker is None or required.marker.evaluate(dict(context)) else None
    except (InvalidRequirement, ValueError):
        return None


def packages_between(
    trials: Trials,
    names: Sequence[str],
    flipped: Verdict,
    probe_of: Callable[[Collection[str]], Probe],
    label_of: Callable[[Collection[str]], str],
    required: Required | None = None,
    *,
    leaves_out: bool = False,
    width: int | None = 1,
) -> Reduced:
    """Find the fewest packages whose exchange leads to the verdict `flipped`, the likeliest of `names` first.

    All of them together are supposed to be enough. Failures teach `required` which of them belong together. With
    `leaves_out`, each package of the result is left out once. `width` as in `Fewest`.
    """

    def closed(units: Units) -> Units:
        return required.closed(units).intersection(names) if required is not None else units

    choices = Choices(
        dict.fromkeys(names, 1.0),
        probe_of,
        label_of,
        closed=closed,
        learn=lambda units, _: required is not None and required.learn(units),
    )
    reduced = Fewest(trials, flipped, choices, most=math.inf, leaves_out=leaves_out, width=width).run()
    if reduced.shown is not None and is_warm(reduced.shown):
        reduced = evolve(reduced, shown=trials.fresh(label_of(reduced.units), probe_of(reduced.units)))
    trials.tally.used.update(run.key for _, run in reduced.tried.values())  # none of them can prove a claim later
    return reduced


def find_package(trials: Trials, sides: Sides, until: Level = Level.PACKAGE) -> tuple[Finding, Sides]:
    """Find the packages that make the difference; returns them with sides that differ only in them.

    If `until` is the file level or deeper, the runs that prove it are traced; if several packages differed, only if
    they are the sides between which lines are searched.
    """
    changes = {change.name: change for change in sides.before.lock.diff(sides.after.lock)}
    if len(changes) == 1:
        trials.begin(Level.PACKAGE, f"only {listed(changes)} differs")
        finding = Finding(Level.PACKAGE, tuple(changes.values()), runs=2)
        back = f"the {sides.after.verdict.value} environment with {versions(finding.packages, newer=False)}"
        forward = f"the {sides.before.verdict.value} environment with {versions(finding.packages, newer=True)}"
        return evolve(finding, proofs=proved_again(trials, sides, finding, (back, forward), until)), sides
    trials = trials.for_mixtures(sides)
    trials.begin(Level.PACKAGE, f"{len(changes)} packages differ: which one makes the difference?")
    return _Exchanges(trials, sides, changes, Required.between(trials, sides)).find(until)


@define
class _Exchanges:
    """The search between two sides, in which packages are exchanged in their locks.

    `reverting` knows what has to be reverted together; `searches` are those that were made.
    """

    trials: Trials
    sides: Sides
    changes: Mapping[str, Change]
    reverting: Required
    searches: list[Reduced] = field(factory=list)

    def find(self, until: Level) -> tuple[Finding, Sides]:
        """Find the packages and prove them."""
        order, before, after, judge = self._ranked(), self.sides.before, self.sides.after, self.trials.judge
        search = self._reverted(order)
        shown, unproven = search.shown, frozenset[str]()
        if len(search.units) > 1:  # with all that is tied to it
            search = self._reverted([name for name in order if name in search.units], leaves_out=True)
            shown, unproven = search.shown or shown, search.unproven
        units, certain = search.units, search.units - unproven
        nearer = self.sides
        if shown is not None:
            nearer = evolve(nearer, before=Side(self._older(units), before.verdict, judge.reduced(shown)))
        named, along = certain or self._advanced(order, unproven), frozenset[str]()
        back, forward = self._both_ways(nearer, units, named, until)
        if certain and not forward.holds and len(order) > len(certain):
            # Either they can't run without others, or they make the difference only together with others.
            is_skip, advancing = forward.verdict is Verdict.SKIP, self.reverting.reversed()
            if is_skip:
                advancing.learn(certain)
            others = self._advanced(order, unproven | advancing.closed(certain), certain)
            along = others - unproven if is_skip else along
            named |= others - along
            forward = self._forward(named, along)
        if named != units and forward.observation is not None and forward.holds and not along:
            run = judge.reduced(forward.observation)
            nearer = evolve(self.sides, after=Side(self._newer(named), after.verdict, run))
        is_tied = len(named) > 1 and not certain
        notes = search.notes if len(units) > 1 and not unproven - named else ()
        if len(certain) > 1:
            several = "both" if len(certain) == 2 else "all"
            notes += (f"each of {listed(sorted(certain))} makes the difference: {several} must be reverted",)
        finding = Finding(
            Level.PACKAGE,
            nearer.before.lock.diff(nearer.after.lock),
            proofs=(back, forward),
            candidates=len(order),
            runs=sum(reduced.runs for reduced in self.searches) + 1,
            unresolved=sum(reduced.unresolved for reduced in self.searches),
            is_minimal=not is_tied and (len(units) == 1 or search.is_minimal),
            notes=notes,
        )
        return finding, nearer

    def _older(self, names: Collection[str]) -> Lock:
        """The newer side with these packages reverted."""
        return self.sides.after.lock.exchanging(self.sides.before.lock, names)

    def _newer(self, names: Collection[str]) -> Lock:
        """The older side with these packages advanced."""
        return self.sides.before.lock.exchanging(self.sides.after.lock, names)

    def _reverted(self, names: Sequence[str], *, leaves_out: bool = False) -> Reduced:
        """Find the fewest packages that must be reverted; with `leaves_out`, without what is tied to them."""
        trials, after = self.trials, self.sides.after
        search = packages_between(
            trials,
            names,
            self.sides.before.verdict,
            lambda units: trials.installed(after, self._older(units)),
            lambda units: f"reverted: {listed(sorted(units))}",
            None if leaves_out else self.reverting,
            leaves_out=leaves_out,
        )
        self.searches.append(search)
        return search

    def _advanced(
        self, order: Sequence[str], first: frozenset[str], along: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Return the fewest packages, those in `first` before others, that must be advanced with those `along`."""
        names = sorted((name for name in order if name not in along), key=lambda name: name not in first)
        if len(names) < 2:
            return frozenset(names)
        trials, before = self.trials, self.sides.before
        search = packages_between(
            trials,
            names,
            self.sides.after.verdict,
            lambda units: trials.installed(before, self._newer(along.union(units))),
            lambda units: f"advanced: {listed(sorted(along.union(units)))}",
        )
        self.searches.append(search)
        return search.units

    def _both_ways(
        self, nearer: Sides, units: frozenset[str], named: frozenset[str], until: Level
    ) -> tuple[Proof, Proof]:
        """Prove that reverting `units` makes the difference in the newer side, and advancing `named` in the older."""
        trials, before, after = self.trials, self.sides.before, self.sides.after
        changes = [self.changes[name] for name in sorted(named)]
        back = f"the {after.verdict.value} environment with {versions(changes, newer=False)}"
        if units - named:
            back += f", and with {listed(sorted(units - named))}, which it can't run without"
        claims = Claim(back, trials.installed(after, self._older(units)), before.verdict), self._claim(named)
        traced_to = Level.PACKAGE if can_narrow(trials, changes) else until
        finding = Finding(Level.PACKAGE, nearer.before.lock.diff(nearer.after.lock))
        return proved(trials, nearer, finding, claims, traced_to)

    def _forward(self, named: frozenset[str], along: frozenset[str] = frozenset()) -> Proof:
        claim = self._claim(named, along)
        return self.trials.proof(claim.sentence, claim.probe, claim.expected)

    def _claim(self, named: frozenset[str], along: frozenset[str] = frozenset()) -> Claim:
        """That the older side with some packages advanced has the verdict of the newer one."""
        before, after = self.sides.before, self.sides.after
        changes = [self.changes[name] for name in sorted(named)]
        forth = f"the {before.verdict.value} environment with {versions(changes, newer=True)}"
        if along:
            forth += f", and with {listed(sorted(along))} changed, which it can't run without"
        return Claim(forth, self.trials.installed(before, self._newer(named | along)), after.verdict)

    def _ranked(self) -> tuple[str, ...]:
        """The packages, the likeliest first.

        Those that the newer side lacks are usually only required by others, so they come last.
        """
        raised, question, lock = failure_of(self.sides), self.trials.question, self.sides.after.lock
        requested = [name for name in map(name_of, question.repro.dependencies) if name != question.subject]
        order = ranked(self.changes, tuple(raised.chain()) if raised is not None else (), "", requested)
        return tuple(sorted(order, key=lambda name: not lock.version_of(name)))
