"""The release level of a culprit: bisects over its releases, with everything else unchanged.

Other packages keep their versions even if that breaks their requirements. Only what a release of the culprit itself
requires is moved too.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, fields, frozen
from packaging.requirements import Requirement
from packaging.version import Version

from harness.culprit.counterfactual import Trials
from harness.culprit.release_search import ReleaseSearch, Searched
from harness.culprit.side_proofs import proved_again
from harness.culprit.sides import Side, Sides, exchanged
from harness.errors import UnknownProject, UnknownRelease
from harness.model import Change, Lock, Release, Verdict, normalized_name
from harness.model.culprit import Finding, Level
from harness.planning.plan import Plan, releases_between
from harness.probe import Probe
from harness.probe.probe import Probing


@frozen(kw_only=True)
class _InPlace(Plan):
    """A plan that puts each release into the same lock, `base`."""

    base: Lock
    prober: Probing
    asked: tuple[str, ...]

    def probe(self, position: int, near: Lock | None, attempt: int = 0) -> Probe:  # noqa: ARG002 - always near `base`
        """The probe of one release: it is resolved alone near the lock, and the result is exchanged in the lock."""
        alone = super().probe(position, self.base, attempt)
        lock = self.prober.resolve(alone).lock
        if lock is None:
            return alone
        moved = [change.name for change in self.base.diff(lock) if change.after is not None]
        combination = evolve(alone.combination, requirements=(*self.asked, *alone.combination.requirements), near=None)
        return evolve(alone, combination=combination, near=None, lock=exchanged(self.base, lock, moved))


def narrow_release(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, Sides]:
    """Find the neighbouring releases of the culprit between which the verdict changes.

    Returns the narrowed finding and sides. They are unchanged if several packages moved, if one side lacks the culprit,
    or if the two releases are neighbours already. If the search fails, the finding has a note that says why. Raises
    `Interrupted`, `NoNetwork`, `NoSpace`.
    """
    change = package.packages[0]
    try:
        releases = _releases(trials, package.packages)
    except (UnknownProject, UnknownRelease) as unknown:
        return evolve(package, notes=(*package.notes, f"not bisected over its own releases: {unknown}")), sides
    if len(releases) <= 2:
        return package, sides
    is_upgrade = _is_upgrade(change)
    in_place = _in_place(trials, sides, change, releases, is_upgrade=is_upgrade)
    searched = ReleaseSearch(in_place, trials.prober, trials.lanes, trials.reporter).run()
    trials.tally.searched = searched
    trials.tally.seen.update(observation.key for observation in searched.record.observations.values())
    trials.tally.ran_now += searched.record.ran
    older, newer = searched.sides if len(searched.sides) == 2 else (None, None)
    if older is None or newer is None or older.lock is None or newer.lock is None:
        note = f"not narrowed to one release of {change.name}: {', '.join(searched.suspects) or 'no change was seen'}"
        return evolve(package, notes=(*package.notes, note)), sides
    ends = (Side(older.lock, sides.before.verdict, older), Side(newer.lock, sides.after.verdict, newer))
    if not is_upgrade:
        ends = (Side(newer.lock, sides.before.verdict, newer), Side(older.lock, sides.after.verdict, older))
    return _narrowed(trials, package, Sides(*ends), searched, until), Sides(*ends)


def can_narrow(trials: Trials, packages: Sequence[Change]) -> bool:
    """Whether `narrow_release` has releases to search. Raises `NoNetwork`."""
    try:
        return len(_releases(trials, packages)) > 2
    except (UnknownProject, UnknownRelease):
        return False


def _releases(trials: Trials, packages: Sequence[Change]) -> tuple[Release, ...]:
    """The releases from one side to the other if one package changed its version, in version order, else ()."""
    change = packages[0]
    if len(packages) != 1 or change.before is None or change.after is None:
        return ()
    lower, upper = sorted((change.before, change.after), key=Version)
    return releases_between(trials.index, trials.plan, change.name, lower, upper)


def _is_upgrade(change: Change) -> bool:
    """Whether the version rises; the index may list neither version, because local labels such as +cpu count."""
    return change.before is not None and change.after is not None and Version(change.before) < Version(change.after)


def _in_place(
    trials: Trials, sides: Sides, change: Change, releases: tuple[Release, ...], *, is_upgrade: bool
) -> _InPlace:
    """The plan that tries each of these releases (in version order) in the lock of the older side."""
    plan = trials.plan
    oldest, newest = (sides.before, sides.after) if is_upgrade else (sides.after, sides.before)
    ends = {oldest.verdict: 0, newest.verdict: len(releases) - 1}
    narrower = evolve(
        plan,
        question=evolve(
            plan.question, subject=change.name, find_fix=oldest.verdict is Verdict.BAD, confirm=0, flaky=False
        ),
        repro=evolve(plan.repro, signature=trials.judge.signature),
        releases=releases,
        good=ends[Verdict.GOOD],
        bad=ends[Verdict.BAD],
        left_out=(),
        as_of=sides.after.observation.as_of or "none",
        requirements=(),
        holds=tuple(hold for hold in plan.holds if normalized_name(Requirement(hold).name) != change.name),
        anchor=sides.before.lock,
        choices=(),
    )
    return _InPlace(
        **{name.name: getattr(narrower, name.name) for name in fields(Plan)},
        base=sides.before.lock,
        prober=trials.prober,
        asked=(*plan.requirements, plan.subject),
    )


def _narrowed(trials: Trials, package: Finding, sides: Sides, searched: Searched, until: Level) -> Finding:
    """The finding on the two releases around the change, proved by another run of each."""
    name = package.packages[0].name
    several = f"one of these releases of {name}: {', '.join(searched.suspects)}"
    found = evolve(
        package,
        packages=sides.before.lock.diff(sides.after.lock),
        runs=package.runs + searched.record.ran,
        notes=package.notes if len(searched.suspects) == 1 else (*package.notes, several),
    )
    older, newer = (
        f"{name} {side.lock.version_of(name)}, everything else held" for side in (sides.before, sides.after)
    )
    return evolve(found, proofs=proved_again(trials, sides, found, (older, newer), until))
