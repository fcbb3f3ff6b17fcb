"""The release level of a culprit: bisects over its releases, with everything else unchanged.

Other packages keep their versions even if that breaks their requirements. Only what a release of the culprit itself
requires is moved too.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from harness.culprit.proofs import Trials, proved_again
from harness.culprit.sides import Side, Sides
from harness.model import Change, Release, Verdict
from harness.model.culprit import Finding, Level
from harness.model.lock import AsOf
from harness.probing.line import Line, ProbedLine, SearchedLine
from harness.question.package_set import PackageSet, Way
from harness.question.releases import releases_on_line


def narrow_release(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, Sides]:
    """Find the neighbouring releases of the culprit between which the verdict changes.

    Returns the narrowed finding and sides. They are unchanged if several packages moved, if one side lacks the culprit,
    or if the two releases are neighbours already. If the search fails, the finding has a note that says why. Raises
    `Interrupted`, `NoNetwork`, `NoSpace`.
    """
    change = package.packages[0]
    releases = _releases(trials, package.packages)
    if len(releases) <= 2:
        return package, sides
    line = _in_place(trials, sides, change, releases)
    probed = ProbedLine(line, trials.judge, trials.prober, trials.lanes, trials.reporter, trials.question.policy.noise)
    changed = "fixed" if line.find_fix else "broke"
    headline = (
        f"looking for the release that {changed} {trials.question.repro.name}: {change.name} {line.names[0]} to "
        f"{line.names[-1]}, {len(releases)} releases, everything else unchanged"
    )
    searched = probed.search(announced=(headline, ()))
    trials.tally.searched = searched
    trials.tally.used.update(observation.key for observation in searched.record.observations.values())
    trials.tally.ran_now += searched.record.ran
    trials.tally.failed += searched.search.is_noisy  # proofs that hold may be luck, too
    older, newer = searched.sides if len(searched.sides) == 2 else (None, None)
    if older is None or newer is None or older.lock is None or newer.lock is None:
        note = f"not narrowed to one release of {change.name}: {', '.join(searched.suspects) or 'no change was seen'}"
        return evolve(package, notes=(*package.notes, note)), sides
    narrowed = Sides(Side(older.lock, sides.before.verdict, older), Side(newer.lock, sides.after.verdict, newer))
    return _narrowed(trials, package, narrowed, searched, until), narrowed


def can_narrow(trials: Trials, packages: Sequence[Change]) -> bool:
    """Whether `narrow_release` has releases to search. Raises `NoNetwork`."""
    return len(_releases(trials, packages)) > 2


def _releases(trials: Trials, packages: Sequence[Change]) -> tuple[Release, ...]:
    """The releases from the older side to the newer one if one package changed its version, else ()."""
    change = packages[0]
    if len(packages) != 1 or change.before is None or change.after is None:
        return ()
    known, interpreter = trials.index.known_releases(change.name), trials.prober.builder.interpreter
    return releases_on_line(known, trials.question, interpreter, (change.before, change.after))[0]


def _in_place(trials: Trials, sides: Sides, change: Change, releases: tuple[Release, ...]) -> Line:
    """The releases as a line, each put into the lock of the older side."""
    question = trials.question
    requirements = (*question.combination.requirements, question.subject)
    day = AsOf.read(sides.after.observation.as_of).moment
    ends = {sides.before.verdict: 0, sides.after.verdict: len(releases) - 1}
    beside = PackageSet(
        repro=question.repro,
        combination=evolve(question.combination, requirements=requirements, as_of=day),
        way=Way.IN_PLACE,
        lock=sides.before.lock,
    )
    names = tuple(str(release.version) for release in releases)
    return Line(
        subject=change.name,
        names=names,
        probe=lambda trial: beside.at(trials.prober, {change.name: names[trial.position]}, trial.attempt),
        good=ends[Verdict.GOOD],
        bad=ends[Verdict.BAD],
        find_fix=sides.before.verdict is Verdict.BAD,
    )


def _narrowed(trials: Trials, package: Finding, sides: Sides, searched: SearchedLine, until: Level) -> Finding:
    """The finding on the two releases around the change, proved by another run of each."""
    name = package.packages[0].name
    several = f"one of these releases of {name}: {', '.join(searched.suspects)}"
    finding = evolve(
        package,
        packages=sides.before.lock.diff(sides.after.lock),
        runs=package.runs + searched.record.ran,
        notes=package.notes if len(searched.suspects) == 1 else (*package.notes, several),
    )
    older, newer = (
        f"{name} {side.lock.version_of(name)}, everything else held" for side in (sides.before, sides.after)
    )
    return evolve(finding, proofs=proved_again(trials, sides, finding, (older, newer), until))
