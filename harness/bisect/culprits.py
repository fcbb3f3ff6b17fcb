"""Finds the culprits among packages that must be held back together.

An older release of one package may need an older release of another, which is then held back too but is no culprit. So
once the release of a culprit is known, its newest good release replaces that of the good end, and packages that no
longer need to be held back are dropped. If two packages change together at the boundary, each is upgraded alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.bisect.boundary import Boundary, find_boundary
from harness.bisect.groups import failing_of
from harness.bisect.held_back import Means, find_partners
from harness.bisect.standing import Standing
from harness.bisect.upgrade_answer import PackageCulprit
from harness.culprit.sides import exchanged
from harness.model import Change, Lock, Observation, Repro, normalized_name
from harness.probe import Probe

if TYPE_CHECKING:
    from harness.bisect.group_questions import GroupQuestion
    from harness.planning.world import Versions, World


@frozen
class Search:
    """The search for the culprits of one group.

    `units` are the changes by package, `order` the packages with the most likely first. `held` is also held back in
    every run.
    """

    means: Means
    question: GroupQuestion
    bad: World
    good: World
    units: Mapping[str, Change]
    order: Sequence[str]
    repro: Repro
    held: Versions

    def passes(self, versions: Versions) -> Observation | None:
        """Run the bad world with these versions held back; returns the run if the group passes in it, else None."""
        probe = self.bad.with_versions({**self.held, **versions}, self.repro)
        names = ", ".join(f"{name} {version or '(absent)'}" for name, version in versions.items())
        run = self.means.observe(f"held back: {names}", probe)
        return run if self.question.stand(run).standing is Standing.PASSES else None


def culprits_of(search: Search, names: Sequence[str], versions: Mapping[str, str | None]) -> list[PackageCulprit]:
    """Find the culprits among packages that must be held back together; with `versions` the group passes."""
    held = dict(versions)
    waiting = list(names)
    found: list[PackageCulprit] = []
    while waiting:
        name = waiting.pop(0)
        if name not in held:
            continue
        others = {other: version for other, version in held.items() if other != name}
        culprit = _culprit(search, search.units[name], others, {one.package for one in found})
        found.append(culprit)
        held[culprit.package] = culprit.boundary.last_good
        if culprit.package != name:  # the package found instead may be the only culprit
            if search.passes({other: version for other, version in held.items() if other != name}) is not None:
                del held[name]
            else:
                waiting.insert(0, name)
        for other in [other for other in waiting if other in held]:
            if _is_not_needed(search, held, other):
                del held[other]
    # An earlier culprit may only have been held back because of a later one.
    for culprit in found[:-1]:
        if len(held) > 1 and _is_not_needed(search, held, culprit.package):
            del held[culprit.package]
    kept = [culprit for culprit in found if culprit.package in held]
    return [*kept, *_partners_of(search, kept)]


def _partners_of(search: Search, culprits: Sequence[PackageCulprit]) -> list[PackageCulprit]:
    """Return the packages that break the tests only together with a culprit, each with its boundary."""
    known = {culprit.package for culprit in culprits}
    found = []
    for culprit in culprits:
        for partner in culprit.together_with:
            if partner not in known:
                known.add(partner)
                others = {
                    other.package: other.boundary.last_good
                    for other in culprits
                    if other.package != culprit.package and culprit.package not in other.together_with
                }
                boundary = _boundary(search, search.units[partner], others)
                along = tuple(sorted({culprit.package, *culprit.together_with} - {partner}))
                found.append(PackageCulprit(boundary, together_with=along, moved=_moved(boundary)))
    return found


def _boundary(search: Search, change: Change, others: Versions) -> Boundary:
    return find_boundary(
        search.means,
        search.bad,
        change,
        search.question.stand,
        search.repro,
        {**search.held, **others},
        is_strict=not search.question.signature.captured,
    )


def _is_not_needed(search: Search, held: Mapping[str, str | None], name: str) -> bool:
    """Whether the group passes with the others held back while this one stays at the version of the bad end."""
    rest = {other: version for other, version in held.items() if other != name}
    run = search.passes(rest)
    return run is not None and run.lock is not None and run.lock.version_of(name) == search.units[name].after


def _culprit(search: Search, change: Change, others: Versions, known: Collection[str]) -> PackageCulprit:
    """Find the boundary of one package, or of a package that changed with it and is the actual culprit.

    Packages in `known` are not searched again. A package that changed along with this one is searched with this one
    held back, because the two may break the tests one after the other.
    """
    boundary = _boundary(search, change, others)
    moved = _moved(boundary)
    owner = _pinned_by(search, boundary, moved)
    if owner is not None and owner.name not in {*known, *others}:
        return _culprit(search, search.units[owner.name], others, {*known, boundary.package})
    instead = _moved_along(search, boundary, moved)
    if instead is not None and instead.name in search.units and instead.name not in {*known, *others}:
        unit = evolve(search.units[instead.name], before=instead.before)
        return _culprit(search, unit, {**others, boundary.package: boundary.last_good}, {*known, boundary.package})
    partners, forward = _partners(search, boundary) if not others else ((), None)
    return PackageCulprit(boundary, together_with=partners, moved=moved, forward=forward)


def _moved(boundary: Boundary) -> tuple[Change, ...]:
    locks: list[Lock] = [side.lock for side in boundary.sides if side.lock is not None]
    return locks[0].diff(locks[1]) if len(locks) == 2 else ()


def _pinned_by(search: Search, boundary: Boundary, moved: Sequence[Change]) -> Change | None:
    """Return the requested package that pins exactly the first bad release of a transitive one; None if there is none.

    Neither can be upgraded or held back without the other, so the requested package is named as the culprit.
    """
    asked = {normalized_name(Requirement(text).name) for text in search.bad.requirements}
    if boundary.package in asked or boundary.first_bad is None or len(boundary.sides) != 2:
        return None
    for change in moved:
        if change.name in search.units and change.name in asked and change.after is not None:
            other = (f"{change.name}=={change.after}", f"{boundary.package}!={boundary.first_bad}")
            if search.means.prober.resolve(search.bad.constrained(other, search.repro)).lock is None:
                return change
    return None


def _moved_along(search: Search, boundary: Boundary, moved: Sequence[Change]) -> Change | None:
    """Return the package that changed with the first bad release and breaks the tests, unless that release does."""
    along = [
        change
        for change in moved
        if change.name != boundary.package and change.before is not None and change.after is not None
    ]
    if not along or len(boundary.sides) != 2:
        return None
    before, after = (side.lock for side in boundary.sides)
    if before is None or after is None:
        return None
    if _fails_with(search, boundary, before, after, boundary.package):
        return None
    return next((change for change in along if _fails_with(search, boundary, before, after, change.name)), None)


def _fails_with(search: Search, boundary: Boundary, before: Lock, after: Lock, name: str) -> bool:
    """Whether the group fails as with the first bad release if only one package is upgraded, ignoring its requirements.

    If that release fails differently from the bad end, any failure counts, if all tests that the release breaks fail.
    """
    lock = exchanged(before, after, [name])
    combination = search.bad.with_versions({}, search.repro).combination
    run = search.means.observe(
        f"{boundary.package} {boundary.last_good} with only {name} {lock.version_of(name)}",
        Probe(search.repro, combination, lock=lock),
    )
    stand, first_bad = search.question.stand, boundary.sides[-1]
    standing = stand(run).standing
    if standing is not Standing.FAILS_OTHERWISE or stand(first_bad).standing is not Standing.FAILS_OTHERWISE:
        return standing is Standing.FAILS
    tests = search.question.tests
    return set(failing_of(run, tests)) >= set(failing_of(first_bad, tests))


def _partners(search: Search, boundary: Boundary) -> tuple[tuple[str, ...], Observation | None]:
    """Return the packages that a culprit needs to break the tests, and the run of the good world with only it upgraded.

    There are none if it breaks the tests alone. The run is None if it could not be tried.
    """
    name = boundary.package
    after = search.units[name].after
    rest = tuple(other for other in search.order if other != name and search.units[other].after is not None)
    if after is None or not rest:
        return (), None
    older = evolve(search.good, as_of=search.bad.as_of, near=search.good.lock)
    upgraded = {name: after}
    run = search.means.observe(f"the good end with only {name} {after}", older.with_versions(upgraded, search.repro))
    if search.question.stand(run).standing is not Standing.PASSES:
        return (), run
    found = find_partners(search.means, older, search.units, rest, search.question.stand, search.repro, upgraded)
    return (tuple(sorted(found.names)) if found.shown is not None else ()), run
