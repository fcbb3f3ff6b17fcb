"""The package and release levels between two worlds: what must be held back for a failure to go, and since when.

A search for the packages that must be held back takes about 2 log2(r) runs if the culprit is the r-th most likely: one
if the failure names the package that it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.asking.answer import Boundary, Guilty
from harness.asking.boundaries import boundary_of, candidates_of
from harness.asking.failures import (
    FailureJudge,
    Group,
    failing_of,
    packages_of_frames,
    packages_of_log,
    seen_by,
)
from harness.culprit.axis import ONE_RUN, Axis, AxisSearch, Searched
from harness.culprit.sides import exchanged
from harness.events import LevelBegan, Progress
from harness.model import Change, Judgement, Lock, Observation, Release, Repro, Verdict, name_of
from harness.model.culprit import Level
from harness.model.text import counted, listed
from harness.planning.releases import releases_on_line
from harness.planning.worlds import Versions, World
from harness.probing import Probe
from harness.scheduling.scheduler import Engine
from harness.search import FewestChanges, Trial

if TYPE_CHECKING:
    from datetime import datetime

    from harness.asking.observing import Observer
    from harness.request.question import Policy


_FEW = 4
_STEPS = 3
Names = frozenset[str]


class FlakyError(Exception):
    """One run did not tell good from bad, though the search had assumed that; it has to begin again.

    `failures` of `runs` runs of the bad side failed.
    """

    def __init__(self, failures: int, runs: int) -> None:
        super().__init__(failures, runs)
        self.failures, self.runs = failures, runs


@frozen
class PackageSearch:
    """The search for the culprits of one failure.

    `held` are the versions that are also held back in every run. `units` are the changes by package, and `order` the
    packages with the most likely first.
    """

    observer: Observer
    group: Group
    bad: World
    good: World
    repro: Repro
    held: Versions
    order: Sequence[str] = ()
    units: Mapping[str, Change] = field(init=False)

    @units.default
    def _changes(self) -> Mapping[str, Change]:
        return {
            change.name: change
            for change in self.good.lock.diff(self.bad.lock)
            if change.name not in self.held
            and self.bad.scope.subject in ("", change.name)
            # One that only the bad end has can be left out unless that end is a day.
            and (change.before is not None or self.bad.near is not None)
        }

    @property
    def judge(self) -> FailureJudge:
        """The judge for which only the failure of the bad end is bad."""
        return self.group.judge(self.observer.prober.store)

    def observe(self, label: str, probe: Probe) -> Observation:
        """Run one probe of the failure."""
        return self.observer.observe(label, probe, self.judge)

    def passes(self, versions: Versions) -> Observation | None:
        """Run the bad world with these versions held back; returns the run if the tests pass in it, else None."""
        probe = self.bad.at({**self.held, **versions}, self.repro)
        names = ", ".join(f"{name} {version or '(absent)'}" for name, version in versions.items())
        run = self.observe(f"held back: {names}", probe)
        return run if self.judge(run).verdict is Verdict.GOOD else None

    def held_back(self) -> dict[str, str | None] | None:
        """Return the versions at which packages must be held back for the tests to pass; None if that is not enough."""
        told = f"{counted(len(self.order), 'package')} changed: which must be held back for the tests to pass?"
        names = self.fewest(
            self.order,
            lambda names: self.bad.at({**self.held, **{name: self.units[name].before for name in names}}, self.repro),
            Verdict.GOOD,
            told,
            "held back",
        )
        return {name: self.units[name].before for name in self.order if name in names} if names is not None else None

    def fewest(
        self, order: Sequence[str], probe_of: Callable[[Names], Probe], flipped: Verdict, told: str, how: str
    ) -> Names | None:
        """Return the fewest packages of `order` that lead to the verdict `flipped`; None if all together do not.

        `told` says what is searched, `how` what is done to the packages of a run.
        """
        self.observer.reporter.report(LevelBegan(Level.PACKAGE, told))

        def label_of(names: Names) -> str:
            return f"{how}: {listed(sorted(names))}"

        search, observer = FewestChanges(order, flipped=flipped), self.observer

        def judged(_: Names, observation: Observation, cached: bool) -> Judgement:
            observer.count.add(observation, cached=cached)
            return self.judge(observation)

        def progress() -> Progress:
            groups = observer.count.open_failures
            return Progress(candidates=len(order), tried=search.result.runs, groups=groups)

        prober = observer.repeating(self.judge)
        Engine(prober, observer.lanes, probe_of, label_of, judged, observer.reporter, progress).drive(search)
        result = search.result
        if not result.shown:  # the search assumed that all of them are enough
            run = self.observe(label_of(result.needed), probe_of(result.needed))
            if self.judge(run).verdict is not flipped:
                return None
        return result.needed

    # -- since which release

    def boundary(self, change: Change, others: Versions) -> Boundary:
        """Find the two neighbouring releases of a package between which the tests began to fail.

        Everything else stays unchanged. Versions are ordered by number, not by upload: a backport released after the
        culprit comes before it. If the exception changes inside the failing range, both changes are reported: since
        when the tests fail, and since when with this message. Raises `FlakyError`.
        """
        ends = Boundary(
            change.name,
            last_good=change.before,
            first_bad=change.after,
            suspects=(change.after,) if change.after else (),
        )
        line = self._line(change, {**self.held, **others})
        if line is None:
            return ends
        axis, releases, left_out = line
        span = f"{change.name}, from {axis.names[0]} to {axis.names[-1]}"
        told = f"{counted(len(axis.names), 'release')} of {span}: which broke it?"
        self.observer.reporter.report(LevelBegan(Level.RELEASE, told))
        differing = Verdict.BAD if self.group.signature.captured else Verdict.SKIP
        searched = self._searched(axis, evolve(self.judge, differing=differing), self.observer.policy)
        if searched.search.is_noisy and not self.observer.is_flaky:
            bad = searched.search.result.bad_side
            raise FlakyError(bad.bad if bad else 1, bad.runs if bad else 2)
        found = boundary_of(searched, candidates_of(releases), left_out)
        if found.first_bad is None or found.last_good is None:
            return evolve(found, last_good=change.before, first_bad=change.after)
        judgement = self.judge(found.sides[-1])
        found = evolve(found, message=judgement.reason)
        if found.first_bad != axis.names[-1] and judgement.differs:
            found = evolve(found, since=self._since(axis, searched))
        return found

    def _since(self, axis: Axis, searched: Searched) -> str | None:
        """Return the first release that fails as the bad end does, if the first bad one fails differently."""
        judge = evolve(self.judge, differing=Verdict.GOOD)
        later = evolve(axis, good=searched.search.result.first_bad)
        told = f"since which release of {axis.subject} is the message that of the bad end?"
        self.observer.reporter.report(LevelBegan(Level.RELEASE, told))
        known = {trial: run for trial, run in searched.record.observations.items() if trial.attempt == 0}
        result = self._searched(later, judge, ONE_RUN, known).search.result
        return axis.names[result.first_bad] if result.first_bad is not None else None

    def _line(self, change: Change, held: Versions) -> tuple[Axis, tuple[Release, ...], dict[str, str]] | None:
        """Return the releases of a package from the good to the bad end as a line; None if there is nothing between.

        Also returns the releases themselves, and the reasons why others are left out.
        """
        if change.before is None or change.after is None:
            return None
        name, observer, bad = change.name, self.observer, self.bad
        scope = evolve(bad.scope, from_source=(*bad.scope.from_source, *bad.sources))
        releases, left_out = releases_on_line(
            observer.index, scope, observer.interpreter, name, (change.before, change.after), self._until
        )
        if len(releases) < 2:
            return None
        names = tuple(str(release.version) for release in releases)

        def probe(trial: Trial) -> Probe:
            found = bad.near_versions({name: names[trial.position]}, held, self.repro, observer.prober)
            return evolve(found, attempt=trial.attempt)

        def label(position: int) -> str:
            return f"{name} {names[position]}"

        return Axis(name, names, probe, good=0, bad=len(names) - 1, label=label), releases, left_out

    @property
    def _until(self) -> datetime | None:
        """The day after which no release is tried: that of the newer end."""
        days = (self.bad.until, self.good.until)
        return self.bad.as_of or (max(filter(None, days)) if all(days) else None)

    def _searched(
        self, axis: Axis, judge: FailureJudge, policy: Policy, known: Mapping[Trial, Observation] | None = None
    ) -> Searched:
        """Search a line; `known` are runs that were made before."""
        observer = self.observer
        line = AxisSearch(axis, judge, observer.prober, observer.lanes, observer.reporter, policy)
        likely = {} if known or observer.is_flaky else self._likely(axis, judge)
        searched = line.run(line.begin(known or likely))
        observer.count.ran_now += searched.record.ran
        return searched

    def _likely(self, axis: Axis, judge: FailureJudge) -> dict[Trial, Observation]:
        """Run both sides of each step to another major version, from the newest on, until one is not bad.

        Most changes come with such a step. Of many steps only the newest is run: a bisection takes fewer runs then.
        """
        if axis.good is None or axis.bad is None or axis.bad - axis.good < _FEW:
            return {}
        major = [Version(name).major for name in axis.names]
        steps = [at for at in range(axis.good + 1, axis.bad + 1) if major[at] != major[at - 1]]
        found: dict[Trial, Observation] = {}
        few = steps if len(steps) <= _STEPS else steps[-1:]
        for position in [position for at in reversed(few) for position in (at, at - 1)]:
            run = self.observer.observe(axis.label_of(Trial(position)), axis.probe(Trial(position)), judge)
            found[Trial(position)] = run
            if judge(run).verdict is not Verdict.BAD:
                break
        return found

    # -- which of them are culprits

    def culprits(self, versions: Mapping[str, str | None]) -> list[Guilty]:
        """Find the culprits among packages that must be held back together; with `versions` the tests pass.

        Raises `FlakyError`.
        """
        held = dict(versions)
        waiting = list(versions)
        found: list[Guilty] = []
        while waiting:
            name = waiting.pop(0)
            if name not in held:
                continue
            others = {other: version for other, version in held.items() if other != name}
            culprit = self._culprit(self.units[name], others, {one.package for one in found})
            found.append(culprit)
            held[culprit.package] = culprit.boundary.last_good
            if culprit.package != name:  # the package found instead may be the only culprit
                if self.passes({other: version for other, version in held.items() if other != name}) is not None:
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
        run = self.passes(rest)
        return run is not None and run.lock is not None and run.lock.version_of(name) == self.units[name].after

    def _culprit(self, change: Change, others: Versions, known: Collection[str]) -> Guilty:
        """Find the boundary of one package, or of a package that changed with it and is the actual culprit.

        Packages in `known` are not searched again. A package that changed along with this one is searched with this one
        held back, because the two may break the tests one after the other.
        """
        boundary = self.boundary(change, others)
        owner = self._pinned_by(boundary)
        if owner is not None and owner.name not in {*known, *others}:
            return self._culprit(self.units[owner.name], others, {*known, boundary.subject})
        instead = self._moved_along(boundary, others)
        if instead is not None and instead.name in self.units and instead.name not in {*known, *others}:
            unit = evolve(self.units[instead.name], before=instead.before)
            return self._culprit(unit, {**others, boundary.subject: boundary.last_good}, {*known, boundary.subject})
        return Guilty(boundary, together_with=self._partners(boundary) if not others else ())

    def _pinned_by(self, boundary: Boundary) -> Change | None:
        """Return the requested package that pins exactly the first bad release of a transitive one, if there is one.

        Neither can be upgraded or held back without the other, so the requested package is named as the culprit.
        """
        asked = set(map(name_of, self.bad.requirements))
        if boundary.subject in asked or boundary.first_bad is None or len(boundary.sides) != 2:
            return None
        for change in boundary.moved:
            if change.name in self.units and change.name in asked and change.after is not None:
                other = (f"{change.name}=={change.after}", f"{boundary.subject}!={boundary.first_bad}")
                if self.observer.prober.resolve(self.bad.constrained(other, self.repro)).lock is None:
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
        if change.name not in self.units or boundary.first_bad is None:
            return False
        run = self.passes({**others, change.name: change.before})
        there = run.lock.version_of(boundary.subject) if run is not None and run.lock is not None else None
        return there is not None and Version(there) >= Version(boundary.first_bad)

    def _fails_with(self, boundary: Boundary, before: Lock, after: Lock, name: str) -> bool:
        """Whether it fails as with the first bad release if only one package is upgraded, ignoring its requirements.

        Packages that are new there come along, as it may need them. If that release fails differently
        from the bad end, any failure counts, if all tests that it breaks fail.
        """
        new = (change.name for change in boundary.moved if change.before is None)
        lock = exchanged(before, after, [name, *new])
        run = self.observe(
            f"{boundary.subject} {boundary.last_good} with only {name} {lock.version_of(name)}",
            Probe(self.repro, self.bad.at({}, self.repro).combination, lock=lock),
        )
        judgement, first_bad = self.judge(run), boundary.sides[-1]
        if not judgement.differs or not self.judge(first_bad).differs:
            return judgement.verdict is Verdict.BAD
        tests = self.group.tests
        return set(failing_of(run, tests)) >= set(failing_of(first_bad, tests))

    def _partners(self, boundary: Boundary) -> tuple[str, ...]:
        """Return the packages that a culprit needs to break the tests: none if it breaks them alone."""
        name = boundary.subject
        after = self.units[name].after
        rest = tuple(other for other in self.order if other != name and self.units[other].after is not None)
        if after is None or not rest:
            return ()
        older = evolve(self.good, as_of=self.bad.as_of, near=self.good.lock)
        run = self.observe(f"the good end with only {name} {after}", older.at({name: after}, self.repro))
        if self.judge(run).verdict is not Verdict.GOOD:
            return ()
        names = self.fewest(
            rest,
            lambda names: older.at({name: after, **{other: self.units[other].after for other in names}}, self.repro),
            Verdict.BAD,
            f"{name} alone does not make the tests fail: which other package is needed?",
            "upgraded too",
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
                found.append(Guilty(self.boundary(self.units[partner], others), together_with=along))
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
        return bool(boundary.sides) and self.judge(boundary.sides[-1]).differs and boundary.since is None

    def _code_in(self, run: Observation) -> frozenset[str]:
        """Return the packages in the traceback of a run, from its log if nothing else has one."""
        raised = seen_by(run, self.group).exception
        frames = packages_of_frames(list(raised.chain())) if raised is not None else []
        return frozenset(frames) or packages_of_log(self.observer.prober.store.log(run))
