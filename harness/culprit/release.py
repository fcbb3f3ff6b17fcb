"""The release level of a culprit: bisects over its releases, with everything else unchanged.

Other packages keep their versions even if that breaks their requirements. Only what a release of the culprit itself
requires is moved too.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from packaging.requirements import Requirement
from packaging.version import Version

from harness.culprit.axis import Axis, AxisSearch, Searched
from harness.culprit.side_proofs import proved_again
from harness.culprit.sides import Side, Sides, exchanged
from harness.culprit.trials import Trials
from harness.environment.resolve import ERA_MARGIN
from harness.errors import UnknownProject, UnknownRelease
from harness.model import Change, Release, Verdict, normalized_name
from harness.model.culprit import Finding, Level
from harness.model.lock import AsOf
from harness.planning.releases import releases_on_line
from harness.probing import Probe
from harness.search import Trial


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
    axis = _in_place(trials, sides, change, releases, is_upgrade=is_upgrade)
    line = AxisSearch(axis, trials.judge, trials.prober, trials.lanes, trials.reporter, trials.scope.policy)
    changed = "fixed" if axis.find_fix else "broke"
    begun = line.begin()
    line.announce(
        f"looking for the release that {changed} {trials.scope.repro.name}: {change.name} {axis.names[0]} to "
        f"{axis.names[-1]}, {len(releases)} releases, everything else unchanged",
        (),
        begun,
    )
    searched = line.run(begun)
    trials.tally.searched = searched
    trials.tally.seen.update(observation.key for observation in searched.record.observations.values())
    trials.tally.ran_now += searched.record.ran
    trials.tally.failed += searched.search.is_noisy  # proofs that hold may be luck, too
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
    interpreter = trials.prober.builder.interpreter
    return releases_on_line(trials.index, trials.scope, interpreter, change.name, (lower, upper), None)[0]


def _is_upgrade(change: Change) -> bool:
    """Whether the version rises; the index may list neither version, because local labels such as +cpu count."""
    return change.before is not None and change.after is not None and Version(change.before) < Version(change.after)


def _in_place(trials: Trials, sides: Sides, change: Change, releases: tuple[Release, ...], *, is_upgrade: bool) -> Axis:
    """The releases (in version order) as a line, each put into the lock of the older side."""
    scope, base = trials.scope, sides.before.lock
    oldest, newest = (sides.before, sides.after) if is_upgrade else (sides.after, sides.before)
    ends = {oldest.verdict: 0, newest.verdict: len(releases) - 1}
    alone = evolve(
        scope,
        subject=change.name,
        requirements=(),
        holds=tuple(hold for hold in scope.holds if normalized_name(Requirement(hold).name) != change.name),
    )
    asked = (*scope.requirements, scope.subject)
    day = AsOf.read(sides.after.observation.as_of or "none")

    def probe(trial: Trial) -> Probe:
        """A release is resolved alone near the lock, and the result is exchanged in the lock."""
        release = releases[trial.position]
        date = day.of(release.uploaded + ERA_MARGIN if release.uploaded else None)
        combination = evolve(
            alone.combination((f"{change.name}=={release.version}",), date, base),
            prereleases=(change.name,) if release.version.is_prerelease else (),
        )
        found = Probe(scope.repro, combination, base, trial.attempt)
        lock = trials.prober.resolve(found).lock
        if lock is None:
            return found
        moved = [one.name for one in base.diff(lock) if one.after is not None]
        combination = evolve(combination, requirements=(*asked, *combination.requirements), near=None)
        return evolve(found, combination=combination, near=None, lock=exchanged(base, lock, moved))

    return Axis(
        subject=change.name,
        names=tuple(str(release.version) for release in releases),
        probe=probe,
        good=ends[Verdict.GOOD],
        bad=ends[Verdict.BAD],
        find_fix=oldest.verdict is Verdict.BAD,
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
