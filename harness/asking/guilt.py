"""Who is guilty among the packages that must be held back, and which only come along with others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.asking.answer import Boundary, Guilty
from harness.asking.failures import Standing, failing_of, packages_of_frames, packages_of_log
from harness.culprit.sides import exchanged
from harness.model import Change, Lock, Observation, Verdict
from harness.planning.worlds import name_of
from harness.probing import Probe

if TYPE_CHECKING:
    from harness.asking.packages import PackageSearch
    from harness.planning.worlds import Versions


@frozen
class Guilt:
    """Finds the culprits of one failure among the packages that a search found must be held back together."""

    search: PackageSearch

    def culprits(self, versions: Mapping[str, str | None]) -> list[Guilty]:
        """Find the culprits among packages that must be held back together; with `versions` the tests pass.

        Raises `FlakyError`.
        """
        held = dict(versions)
        waiting = list(versions) if len(versions) > 1 else sorted(versions)
        found: list[Guilty] = []
        while waiting:
            name = waiting.pop(0)
            if name not in held:
                continue
            others = {other: version for other, version in held.items() if other != name}
            culprit = self._culprit(self.search.units[name], others, {one.package for one in found})
            found.append(culprit)
            held[culprit.package] = culprit.boundary.last_good
            if culprit.package != name:  # the package found instead may be the only culprit
                if self.search.passes({other: version for other, version in held.items() if other != name}) is not None:
                    del held[name]
                else:
                    waiting.insert(0, name)
            for other in [other for other in waiting if other in held]:
                if self._is_not_needed(held, other):
                    del held[other]
        # An earlier culprit may only have been held back because of a later one.
        for culprit in found[:-1]:
            if len(held) > 1 and self._is_not_needed(held, culprit.package):
                del held[culprit.package]
        kept = [culprit for culprit in found if culprit.package in held]
        return [*self._with_companions(kept), *self._partners_of(kept)]

    def _is_not_needed(self, held: Mapping[str, str | None], name: str) -> bool:
        """Whether the tests pass with the others held back while this one stays at the version of the bad end."""
        rest = {other: version for other, version in held.items() if other != name}
        run = self.search.passes(rest)
        return run is not None and run.lock is not None and run.lock.version_of(name) == self.search.units[name].after

    def _culprit(self, change: Change, others: Versions, known: Collection[str]) -> Guilty:
        """Find the boundary of one package, or of a package that changed with it and is the actual culprit.

        Packages in `known` are not searched again. A package that changed along with this one is searched with this one
        held back, because the two may break the tests one after the other.
        """
        boundary = self.search.boundary(change, others)
        owner = self._pinned_by(boundary)
        if owner is not None and owner.name not in {*known, *others}:
            return self._culprit(self.search.units[owner.name], others, {*known, boundary.subject})
        instead = self._moved_along(boundary, others)
        if instead is not None and instead.name in self.search.units and instead.name not in {*known, *others}:
            unit = evolve(self.search.units[instead.name], before=instead.before)
            return self._culprit(unit, {**others, boundary.subject: boundary.last_good}, {*known, boundary.subject})
        return Guilty(boundary, together_with=self._partners(boundary) if not others else ())

    def _pinned_by(self, boundary: Boundary) -> Change | None:
        """Return the requested package that pins exactly the first bad release of a transitive one, if there is one.

        Neither can be upgraded or held back without the other, so the requested package is named as the culprit.
        """
        asked = set(map(name_of, self.search.bad.requirements))
        if boundary.subject in asked or boundary.first_bad is None or len(boundary.sides) != 2:
            return None
        for change in boundary.moved:
            if change.name in self.search.units and change.name in asked and change.after is not None:
                other = (f"{change.name}=={change.after}", f"{boundary.subject}!={boundary.first_bad}")
                if (
                    self.search.observer.prober.resolve(self.search.bad.constrained(other, self.search.repro)).lock
                    is None
                ):
                    return change
        return None

    def _moved_along(self, boundary: Boundary, others: Versions) -> Change | None:
        """Return the package that changed with the first bad release and breaks the tests, unless that release does.

        If it can't be upgraded alone, it is the one with which the tests pass when only that is held back.
        """
        along = [
            change
            for change in sorted(boundary.moved, key=lambda change: change.name)
            if change.name != boundary.subject and change.before is not None and change.after is not None
        ]
        if not along or len(boundary.sides) != 2:
            return None
        before, after = (side.lock for side in boundary.sides)
        if before is None or after is None or self._fails_with(boundary, before, after, boundary.subject):
            return None
        alone = (change for change in along if self._fails_with(boundary, before, after, change.name))
        return next(alone, None) or next((one for one in along if self._passes_without(boundary, one, others)), None)

    def _passes_without(self, boundary: Boundary, change: Change, others: Versions) -> bool:
        """Whether the tests pass with only this package held back, and the boundary's on its bad side."""
        if change.name not in self.search.units or boundary.first_bad is None:
            return False
        run = self.search.passes({**others, change.name: change.before})
        there = run.lock.version_of(boundary.subject) if run is not None and run.lock is not None else None
        return there is not None and Version(there) >= Version(boundary.first_bad)

    def _fails_with(self, boundary: Boundary, before: Lock, after: Lock, name: str) -> bool:
        """Whether it fails as with the first bad release if only one package is upgraded, ignoring its requirements.

        Packages that are new there come along, as it may need them. If that release fails differently
        from the bad end, any failure counts, if all tests that it breaks fail.
        """
        new = (change.name for change in boundary.moved if change.before is None)
        lock = exchanged(before, after, [name, *new])
        run = self.search.observe(
            f"{boundary.subject} {boundary.last_good} with only {name} {lock.version_of(name)}",
            Probe(self.search.repro, self.search.bad.at({}, self.search.repro).combination, lock=lock),
        )
        standing, first_bad = self.search.standing(run), boundary.sides[-1]
        different = Standing.FAILS_DIFFERENTLY
        if standing is not different or self.search.standing(first_bad) is not different:
            return standing is Standing.FAILS
        tests = self.search.group.tests
        return set(failing_of(run, tests)) >= set(failing_of(first_bad, tests))

    def _partners(self, boundary: Boundary) -> tuple[str, ...]:
        """Return the packages that a culprit needs to break the tests: none if it breaks them alone."""
        name = boundary.subject
        after = self.search.units[name].after
        rest = tuple(
            other for other in self.search.order if other != name and self.search.units[other].after is not None
        )
        if after is None or not rest:
            return ()
        older = evolve(self.search.good, as_of=self.search.bad.as_of, near=self.search.good.lock)
        run = self.search.observe(f"the good end with only {name} {after}", older.at({name: after}, self.search.repro))
        if self.search.standing(run) is not Standing.PASSES:
            return ()
        names = self.search.fewest(
            rest,
            lambda names: older.at(
                {name: after, **{other: self.search.units[other].after for other in names}}, self.search.repro
            ),
            Verdict.BAD,
            (f"{name} alone does not make the tests fail: which other package is needed?", "upgraded too"),
        )
        return tuple(sorted(names or ()))

    def _partners_of(self, culprits: Sequence[Guilty]) -> list[Guilty]:
        """Return the packages that break the tests only together with a culprit, each with its boundary."""
        known = {culprit.package for culprit in culprits}
        found = []
        for culprit in culprits:
            for partner in culprit.together_with:
                if partner in known:
                    continue
                known.add(partner)
                others = {
                    other.package: other.boundary.last_good
                    for other in culprits
                    if other.package != culprit.package and culprit.package not in other.together_with
                }
                along = tuple(sorted({culprit.package, *culprit.together_with} - {partner}))
                found.append(Guilty(self.search.boundary(self.search.units[partner], others), together_with=along))
        return found

    def _with_companions(self, culprits: Sequence[Guilty]) -> list[Guilty]:
        """Return the culprits without packages that only have to be held back along with one of them."""
        found = {culprit.package: culprit for culprit in culprits}
        for culprit in culprits:
            main = self._held_back_with(culprit, list(found.values()))
            if main is not None:
                del found[culprit.package]
                boundaries = (*main.companions, culprit.boundary, *culprit.companions)
                found[main.package] = evolve(main, companions=boundaries)
        return list(found.values())

    def _held_back_with(self, one: Guilty, culprits: Sequence[Guilty]) -> Guilty | None:
        """Return the culprit whose older releases don't work with the newer ones of this package, if that is all.

        Its bad side fails in the culprit's own code, and never as the bad end does, while the culprit's does.
        """
        boundary = one.boundary
        if boundary.since is not None or not self._only_differs(boundary):
            return None
        code = self._code_in(boundary.sides[-1])
        shown = (other for other in culprits if other.package in code and other.package != one.package)
        return next((other for other in shown if other.boundary.sides and not self._only_differs(other.boundary)), None)

    def _only_differs(self, boundary: Boundary) -> bool:
        """Whether the first bad release fails, but never as the bad end does."""
        is_other = bool(boundary.sides) and self.search.standing(boundary.sides[-1]) is Standing.FAILS_DIFFERENTLY
        return is_other and boundary.since is None

    def _code_in(self, run: Observation) -> frozenset[str]:
        """Return the packages in the traceback of a run, from its log if nothing else has one."""
        raised = self.search.group.seen_in(run).exception
        frames = packages_of_frames(list(raised.chain())) if raised is not None else []
        return frozenset(frames) or packages_of_log(self.search.observer.prober.store.log(run))
