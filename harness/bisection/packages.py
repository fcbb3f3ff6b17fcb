"""The package and release levels between two sets of packages: what must be held back, and since when.

A search for the packages that must be held back takes about 2 log2(r) runs if the culprit is the r-th most likely: one
if the failure names the package that it is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.bisection.boundaries import LineQuestion, candidates_of, search_line
from harness.bisection.evidence import lost_what_it_misses
from harness.bisection.failures import FailureJudge, Group, reduced_to
from harness.culprit.descent import find_culprit
from harness.culprit.packages import packages_between
from harness.culprit.proofs import Trials
from harness.culprit.ranking import packages_of_frames, packages_of_log
from harness.culprit.sides import Sides
from harness.model import Change, Observation, RaisedException, Release, Repro, Verdict, name_of
from harness.model.boundary import Boundary
from harness.model.culprit import Culprit, Finding, Level
from harness.model.signature import last_exception
from harness.model.text import counted, listed
from harness.probing import Probe
from harness.probing.line import Line, SearchedLine
from harness.question.package_set import Snapshot, Versions, Way
from harness.question.releases import releases_on_line
from harness.search import Trial

if TYPE_CHECKING:
    from datetime import datetime

    from harness.bisection.observing import Observer
    from harness.question.question import Question


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

    `held` are the versions that are also held back in every run. `alone` is what runs below the release. `units` are
    the changes by package, and `order` the packages with the most likely first.
    """

    observer: Observer
    group: Group
    question: Question
    bad: Snapshot
    good: Snapshot
    alone: Repro
    held: Versions
    order: Sequence[str] = ()
    units: Mapping[str, Change] = field(init=False)

    @units.default
    def _changes(self) -> Mapping[str, Change]:
        return {
            change.name: change
            for change in self.good.lock.diff(self.bad.lock)
            if change.name not in self.held
            and self.question.subject in ("", change.name)
            # One that only the bad end has can be left out unless that end is a day.
            and (change.before is not None or self.bad.way is Way.NEAR)
        }

    @property
    def judge(self) -> FailureJudge:
        """The judge for which only the failure of the bad end is bad."""
        return self.group.judge(self.observer.prober.store)

    def observe(self, label: str, probe: Probe) -> Observation:
        """Run one probe of the failure."""
        return self.observer.observe(label, probe, self.judge)

    def passes(self, versions: Versions) -> Observation | None:
        """Run the bad snapshot with these versions held back; returns the run if the tests pass in it, else None."""
        probe = self.bad.at(self.observer.prober, {**self.held, **versions})
        names = ", ".join(f"{name} {version or '(absent)'}" for name, version in versions.items())
        run = self.observe(f"held back: {names}", probe)
        return run if self.judge(run).verdict is Verdict.GOOD else None

    def held_back(self) -> dict[str, str | None] | None:
        """Return the fewest packages that must be held back for the failure to go, each with its version.

        None if holding back all of them is not enough.
        """
        if not self.held and len(self.good.lock.diff(self.bad.lock)) == 1:  # both ends have run
            return {name: change.before for name, change in self.units.items()}
        sentence = f"{counted(len(self.order), 'package')} changed: which must be held back?"
        observer = self.observer
        trials = Trials(
            self.question,
            observer.repeating(self.judge),
            observer.lanes,
            observer.index,
            self.judge,
            observer.reporter,
            tally=observer.tally,
        )
        trials.begin(Level.PACKAGE, sentence)

        def probe_of(names: Collection[str]) -> Probe:
            versions = {**self.held, **{name: self.units[name].before for name in names}}
            return self.bad.at(observer.prober, versions)

        def label_of(names: Collection[str]) -> str:
            return f"held back: {listed(sorted(names))}"

        # Each is left out once its release is known.
        reduced = packages_between(trials, self.order, Verdict.GOOD, probe_of, label_of, width=None)
        if reduced.shown is None:  # the search assumed that all of them are enough
            run = self.observe(label_of(reduced.units), probe_of(reduced.units))
            if self.judge(run).verdict is not Verdict.GOOD:
                return None
        return {name: self.units[name].before for name in self.order if name in reduced.units}

    # -- since which release

    def boundary(self, change: Change, others: Versions) -> tuple[Culprit, tuple[Finding, ...]]:
        """Find the two neighbouring releases of a package between which the tests began to fail, and what is below.

        Everything else stays unchanged. Versions are ordered by number, not by upload: a backport released after the
        culprit comes before it. The first bad release may fail with another message. Raises `FlakyError`.
        """
        observer, group, name = self.observer, self.group, change.name
        line = self._line(change, {**self.held, **others})
        if line is None:
            suspects = (change.after,) if change.after else ()
            return Culprit(Boundary(change, suspects=suspects)), ()
        candidates, releases, left_out = line
        span = f"{name}, from {candidates.names[0]} to {candidates.names[-1]}"
        judge = evolve(self.judge, differing=Verdict.BAD if group.signature.captured else Verdict.SKIP)
        shared, depth = self.bad.combination, self.question.depth
        question = evolve(
            self.question,
            repro=self.bad.repro if depth is Level.RELEASE else self.alone,
            subject=name,
            combination=evolve(shared, requirements=tuple(text for text in shared.requirements if text != name)),
            policy=observer.policy,
        )
        line_question = _PackageLine(
            search=self,
            line=candidates,
            question=question,
            prober=observer.prober,
            judge=judge,
            depth=Level.PACKAGE if depth is Level.RELEASE else depth,
            announced=(f"{counted(len(candidates.names), 'release')} of {span}: which broke it?", ()),
            known=self._likely(candidates, judge),
            candidates=candidates_of(releases),
            reasons=left_out,
        )
        repeating = observer.repeating(self.judge) if observer.is_flaky else None
        result = search_line(line_question, observer.lanes, observer.index, observer.reporter, repeating=repeating)
        searched, boundary, below = result.searched, result.boundary, result.findings
        observer.tally.ran_now += searched.record.ran + result.ran_now
        if searched.search.is_noisy and not observer.is_flaky:
            bad = searched.search.result.bad_side
            raise FlakyError(bad.bad if bad else 1, bad.runs if bad else 2)
        if None in boundary.ends:
            return Culprit(evolve(boundary, change=change)), ()
        judgement = self.judge(boundary.sides[-1])
        boundary = evolve(boundary, message=judgement.reason if judgement.differs else boundary.message)
        is_wanted = (depth is not Level.RELEASE and judgement.verdict is Verdict.BAD) or any(
            finding.is_tied for finding in below
        )
        return Culprit(boundary, below if is_wanted else ()), below

    def _line(self, change: Change, held: Versions) -> tuple[Line, tuple[Release, ...], dict[str, str]] | None:
        """Return the releases of a package from the good to the bad end as a line; None if there is nothing between.

        Also returns the releases themselves, and the reasons why others are left out.
        """
        if change.before is None or change.after is None:
            return None
        name, observer, bad = change.name, self.observer, self.bad
        shared = evolve(bad.combination, from_source=(*bad.combination.from_source, *bad.sources))
        question = evolve(self.question, combination=shared)
        interpreter, known = observer.prober.builder.interpreter, observer.index.known_releases(name)
        releases, left_out = releases_on_line(known, question, interpreter, (change.before, change.after), self._until)
        if len(releases) < 2:
            return None
        names = tuple(str(release.version) for release in releases)

        def probe(trial: Trial) -> Probe:
            changes = {name: names[trial.position]}
            return bad.at(observer.prober, changes, trial.attempt, held=held)

        def label(position: int) -> str:
            return f"{name} {names[position]}"

        return Line(name, names, probe, good=0, bad=len(names) - 1, label=label), releases, left_out

    @property
    def _until(self) -> datetime | None:
        """The day after which no release is tried: that of the newer end."""
        days = (self.bad.until, self.good.until)
        return self.bad.as_of or (max(filter(None, days)) if all(days) else None)

    def _likely(self, candidates: Line, judge: FailureJudge) -> dict[Trial, Observation]:
        """Run both sides of each step to another major version, from the newest on, until one is not bad.

        Most changes come with such a step. Of many steps only the newest is run: a bisection takes fewer runs then.
        """
        count = len(candidates.names)
        if count <= _FEW or self.observer.is_flaky:
            return {}
        major = [Version(name).major for name in candidates.names]
        steps = [at for at in range(1, count) if major[at] != major[at - 1]]
        runs: dict[Trial, Observation] = {}
        few = steps if len(steps) <= _STEPS else steps[-1:]
        for at in reversed(few):
            newer, older = Trial(at), Trial(at - 1)
            with self.observer.beside(partial(candidates.probe, older)):
                runs[newer] = self.observer.observe(candidates.label_of(newer), candidates.probe(newer), judge)
            if judge(runs[newer]).verdict is not Verdict.BAD:
                break
            runs[older] = self.observer.observe(candidates.label_of(older), candidates.probe(older), judge)
            if judge(runs[older]).verdict is not Verdict.BAD:
                break
        return runs

    # -- which of them are culprits

    def culprits(self, versions: Mapping[str, str | None]) -> list[Culprit]:
        """Find the culprits among packages that must be held back together; with `versions` the tests pass.

        Raises `FlakyError`.
        """
        held, culprits = dict(versions), dict[str, Culprit]()
        while (name := next((name for name in held if name not in culprits), None)) is not None:
            others = {other: version for other, version in held.items() if other != name}
            culprit = self._culprit(self.units[name], others, frozenset(culprits))
            culprits[culprit.package] = culprit
            held[culprit.package] = culprit.boundary.change.before
            for other in [other for other in held if other != culprit.package]:
                rest = {package: version for package, version in held.items() if package != other}
                run = self.passes(rest)
                installed = run.lock.version_of(other) if run is not None and run.lock is not None else None
                # One that the others hold back may be a culprit, unless another was found in its place.
                if run is not None and (other == name or installed == self.units[other].after):
                    held = rest
        return self._with_companions([culprits[name] for name in held])

    def _culprit(self, change: Change, others: Versions, known: Names) -> Culprit:
        """Find the boundary of one package, or of a package that changed with it and is the actual culprit.

        Packages in `known` are not searched again. A package that changed along with this one is searched with this one
        held back, because the two may break the tests one after the other.
        """
        culprit, below = self.boundary(change, others)
        boundary = culprit.boundary
        instead = self._instead(boundary, below)
        if instead is None or instead.name in {*known, *others}:
            return culprit
        held = {**others, boundary.subject: boundary.change.before}
        return self._culprit(evolve(self.units[instead.name], before=instead.before), held, known | {boundary.subject})

    def _instead(self, boundary: Boundary, below: tuple[Finding, ...]) -> Change | None:
        """Return the package that changed with the first bad release and breaks the tests, unless that release does.

        It is also the requested package that pins exactly this release: neither can be upgraded without the other.
        """
        along = [
            change
            for change in sorted(boundary.moved, key=lambda change: change.name)
            if change.name in self.units and change.name != boundary.subject and change.before and change.after
        ]
        prober, required = self.observer.prober, set(map(name_of, self.bad.requirements))
        for change in along if boundary.subject not in required else ():
            other = (f"{change.name}=={change.after}", f"{boundary.subject}!={boundary.change.after}")
            if change.name in required and prober.resolve(self.bad.constrained(prober, other)).lock is None:
                return change
        package = below[0] if below else None
        names = {change.name for change in package.packages} if package is not None and package.is_shown_one_way else ()
        return next((change for change in along if names == {change.name}), None)

    def _with_companions(self, culprits: Sequence[Culprit]) -> list[Culprit]:
        """Return the culprits without packages that only have to be held back along with one of them.

        The bad side of such a package fails in that culprit's code, and never as the bad end does, while the culprit's
        does: its older releases don't work with the newer ones of the package.
        """
        remaining = {culprit.package: culprit for culprit in culprits}
        other_errors = {
            culprit.package: culprit.boundary.sides[-1]
            for culprit in culprits
            if culprit.boundary.message and not self._fails_as_the_bad_end(culprit.boundary)
        }
        for name, run in other_errors.items():
            code, culprit = self._code_in(run), remaining[name]
            mains = (main for main in remaining.values() if main.package in code and main.boundary.sides)
            main = next((main for main in mains if main.package not in other_errors), None)
            if main is not None:
                del remaining[name]
                remaining[main.package] = evolve(main, companions=(*main.companions, culprit.boundary))
        # What another culprit hides at the bad end may be a bug of its own, and not two packages that don't match.
        hidden = other_errors if remaining.keys() - other_errors.keys() else {}
        shown = remaining.keys() - other_errors.keys() | {
            name
            for name in remaining.keys() & hidden.keys()
            if lost_what_it_misses(remaining[name], self._raised(hidden[name]), self.observer.prober)
        }
        return [evolve(culprit, shows_bug=name in shown) for name, culprit in remaining.items()]

    def _fails_as_the_bad_end(self, boundary: Boundary) -> bool:
        """Whether a release that the search over a package ran fails as the bad end does."""
        runs = (self.observer.prober.store.get(step.observation) for step in boundary.steps)
        return any(self.judge(run).verdict is Verdict.BAD for run in runs if run is not None)

    def _code_in(self, run: Observation) -> frozenset[str]:
        """Return the packages in the traceback of a run, from its log if nothing else has one."""
        raised = reduced_to(run, self.group).exception
        frames = packages_of_frames(list(raised.chain())) if raised is not None else []
        return frozenset(frames) or packages_of_log(self.observer.prober.store.log(run))

    def _raised(self, run: Observation) -> RaisedException | None:
        """Return the exception of a run, from its log if the command tells no other way."""
        raised = reduced_to(run, self.group).exception
        return raised or last_exception(self.observer.prober.store.log(run))


@frozen(kw_only=True)
class _PackageLine(LineQuestion):
    """The releases of a package that has to be held back."""

    search: PackageSearch

    def below(self, trials: Trials, sides: Sides, _: SearchedLine) -> tuple[Finding, ...]:
        """Search below two releases: as deep as asked if the bad one fails as the bad end does, else the package."""
        search, good, bad = self.search, sides.before, sides.after
        is_same = search.judge(bad.observation).verdict is Verdict.BAD
        until = search.question.depth if is_same else Level.RELEASE
        if until is Level.RELEASE and len(good.lock.diff(bad.lock)) > 1:
            until = Level.PACKAGE
        bad = evolve(bad, observation=search.judge.reduced(bad.observation))
        sides = Sides(bad, good) if search.observer.policy.find_fix else Sides(good, bad)
        # If that release fails differently from the bad end, any failure counts.
        trials = evolve(trials, judge=search.judge) if is_same else trials
        return find_culprit(trials, sides, until, are_neighbours=True)
