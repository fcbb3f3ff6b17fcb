"""The release level in a world: finds the two neighbouring releases between which the tests began to fail.

Everything else stays unchanged. Versions are ordered by number, not by upload: a backport released after the culprit
comes before it. If the exception changes inside the failing range, both changes are reported: since when the tests
fail, and since when with this message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.version import InvalidVersion, Version

from harness.errors import UnknownProject
from harness.events import LevelBegan, Progress
from harness.model import Judgement, Observation, Release, Repro, Verdict
from harness.model.culprit import Level
from harness.model.verdict import Step
from harness.search import Bisection, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.bisect.held_back import Means
    from harness.bisect.standing import Stand, Stood
    from harness.model import Change
    from harness.planning.world import Versions, World
    from harness.probe import Probe
    from harness.search import BisectionResult


_FEW = 4


@frozen
class Boundary:
    """Two releases of a package between which the tests began to fail.

    A version is None if that end lacks the package. `suspects` are the releases in which the change may be, a single
    one if it is certain. `since` is the first release with the message of the bad end, if that is not `first_bad`;
    `message` is the failure of `first_bad`. `sides` are the runs just before and just after the change.
    """

    package: str
    last_good: str | None
    first_bad: str | None
    releases: tuple[Release, ...] = ()
    suspects: tuple[str, ...] = ()
    since: str | None = None
    message: str = ""
    sides: tuple[Observation, ...] = ()
    steps: tuple[Step, ...] = ()
    left_out: dict[str, str] = field(factory=dict)

    @property
    def is_certain(self) -> bool:
        """Whether the two releases are neighbours and both have run."""
        return len(self.suspects) == 1 and len(self.sides) == 2

    @property
    def yanked(self) -> tuple[str, ...]:
        """The releases between the two that were yanked, and so not run."""
        known = {Version(text): text for text, why in self.left_out.items() if why.startswith("yanked")}
        if not known or self.last_good is None or self.first_bad is None:
            return ()
        low, high = sorted((Version(self.last_good), Version(self.first_bad)))
        return tuple(known[one] for one in known if low < one < high and not one.is_prerelease)


def find_boundary(
    means: Means, bad: World, change: Change, stand: Stand, repro: Repro, held: Versions, *, is_strict: bool
) -> Boundary:
    """Bisect the releases of a package between its versions at both ends, with `held` held back if possible.

    With `is_strict` only the failure of the bad end is bad; otherwise every failure of the tests is.
    """
    ends = Boundary(change.name, change.before, change.after, suspects=(change.after,) if change.after else ())
    if change.before is None or change.after is None:
        return ends
    releases, left_out = _between(means, bad, change, change.before, change.after)
    versions = [str(release.version) for release in releases]
    if len(versions) < 2:
        return ends
    judged_by: Callable[[Stood], Judgement] = (
        (lambda stood: stood.strict) if is_strict else (lambda stood: stood.by_passing)
    )
    search = _Search(means, bad, change.name, releases, stand, repro, held)
    told = f"{len(versions)} releases of {change.name} from {versions[0]} to {versions[-1]}: which broke it?"
    means.reporter.report(LevelBegan(Level.RELEASE, told))
    result = search.run(0, len(versions) - 1, judged_by)
    if result.last_good is None or result.first_bad is None:
        suspects = tuple(versions[position] for position in result.suspects)
        return Boundary(
            change.name, change.before, change.after, releases, suspects, steps=tuple(search.steps), left_out=left_out
        )
    since, message = "", stand(search.seen[result.first_bad]).reason
    last = len(versions) - 1
    if result.first_bad < last and stand(search.seen[result.first_bad]).strict.verdict is Verdict.SKIP:
        later = search.run(result.first_bad, last, lambda stood: stood.by_message)
        since = versions[later.first_bad] if later.first_bad is not None else ""
    return Boundary(
        change.name,
        versions[result.last_good],
        versions[result.first_bad],
        releases,
        tuple(versions[position] for position in result.suspects),
        since or None,
        message,
        (search.seen[result.last_good], search.seen[result.first_bad]),
        tuple(search.steps),
        left_out,
    )


def find_change_of_message(
    means: Means, bad: World, change: Change, stand: Stand, repro: Repro, held: Versions
) -> tuple[str, Observation] | None:
    """Find the newest release of a package without the message of the bad end.

    Returns the version and its run, or None if there is no such release.
    """
    if change.before is None or change.after is None:
        return None
    releases, _ = _between(means, bad, change, change.before, change.after)
    if len(releases) < 2:
        return None
    told = f"{len(releases)} releases of {change.name}: since which is the message that of the bad end?"
    means.reporter.report(LevelBegan(Level.RELEASE, told))
    search = _Search(means, bad, change.name, releases, stand, repro, held)
    result = search.run(0, len(releases) - 1, lambda stood: stood.by_message)
    if result.last_good is None or result.first_bad is None:
        return None
    return str(releases[result.last_good].version), search.seen[result.last_good]


class _Search:
    """Bisections over the same releases, which share their runs through the store."""

    def __init__(
        self,
        means: Means,
        bad: World,
        name: str,
        releases: tuple[Release, ...],
        stand: Stand,
        repro: Repro,
        held: Versions,
    ) -> None:
        self.seen: dict[int, Observation] = {}
        self.steps: list[Step] = []
        self._means = means
        self._bad = bad
        self._name = name
        self._versions = [str(release.version) for release in releases]
        self._stand = stand
        self._repro = repro
        self._held = held

    def run(self, good: int, bad: int, judged_by: Callable[[Stood], Judgement]) -> BisectionResult:
        """Bisect between two positions.

        First tries the newest step to another major version, because most changes come with one.
        """
        self._try_likely(good, bad, judged_by)
        known = {
            position: judged_by(self._stand(seen)).verdict
            for position, seen in self.seen.items()
            if good <= position <= bad
        }
        search = Bisection(len(self._versions), good=good, bad=bad, tried=known)

        def judged(trial: Trial, observation: Observation) -> Judgement:
            judgement = judged_by(self._stand(observation))
            self._note(trial.position, observation, judgement)
            return judgement

        def progress() -> Progress:
            return Progress(states=search.states, left=search.remaining())

        self._means.engine(self._probe, self._label, judged, progress).drive(search)
        return search.result

    def _try_likely(self, good: int, bad: int, judged_by: Callable[[Stood], Judgement]) -> None:
        """Run both sides of the newest step to another major version; the older side only if the newer one is bad."""
        if bad - good < _FEW:
            return
        steps = [at for at in range(good + 1, bad + 1) if self._major(at) != self._major(at - 1)]
        for position in (steps[-1], steps[-1] - 1) if steps else ():
            if position in self.seen:
                continue
            label = f"{self._name} {self._versions[position]}"
            run = self._means.observe(label, self._probe(Trial(position)), lambda seen: self._stand(seen))
            judgement = judged_by(self._stand(run))
            self._note(position, run, judgement)
            if judgement.verdict is not Verdict.BAD:
                return

    def _major(self, position: int) -> int:
        return Version(self._versions[position]).major

    def _note(self, position: int, run: Observation, judgement: Judgement) -> None:
        self.seen[position] = run
        release, seconds = self._versions[position], run.duration_s
        self.steps.append(Step(release, judgement.verdict, judgement.reason, run.key, cached=False, seconds=seconds))

    def _probe(self, trial: Trial) -> Probe:
        version = {self._name: self._versions[trial.position]}
        return self._bad.near_versions(version, self._held, self._repro, self._means.prober)

    def _label(self, trial: Trial) -> str:
        return f"{self._name} {self._versions[trial.position]}"


def _between(
    means: Means, bad: World, change: Change, before: str, after: str
) -> tuple[tuple[Release, ...], dict[str, str]]:
    """Return the releases from the good to the bad end, in this order, and the reasons why others are left out."""
    try:
        known = means.index.releases(change.name)
        ends = Version(Version(before).public), Version(Version(after).public)
    except (UnknownProject, InvalidVersion):
        return (), {}
    tags = frozenset(means.interpreter.wheel_tags())
    oldest, newest = min(ends), max(ends)
    kept: list[Release] = []
    left_out: dict[str, str] = {}
    for release in known:
        if not oldest <= release.version <= newest:
            continue
        reason = release.left_out_because(
            python=means.interpreter.version,
            tags=tags,
            prereleases=False,
            build_from_source=change.name in bad.request.from_source,
        )
        is_later = bad.as_of is not None and release.uploaded is not None and release.uploaded > bad.as_of
        if release.version in ends or (reason is None and not is_later):
            kept.append(release)
        elif reason is not None:
            left_out[str(release.version)] = reason
    return tuple(kept if ends[0] <= ends[1] else reversed(kept)), left_out
