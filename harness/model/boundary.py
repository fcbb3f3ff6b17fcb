"""A boundary: two neighbours on a line of candidates between which the verdict changes, and what shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import InvalidVersion, Version

from harness.model.lock import Change
from harness.model.observation import Observation
from harness.model.release import parsed_version, version_order
from harness.model.verdict import Step, Verdict, verdicts_around

if TYPE_CHECKING:
    from collections.abc import Iterable

# Reasons for leaving out a release that nobody gets without asking for it.
_NOBODY_HAS = ("yanked", "no files", "uploaded after")


@frozen
class Counts:
    """The number of judged runs (`runs`), and of the bad ones among them."""

    bad: int = 0
    runs: int = 0

    @classmethod
    def total(cls, parts: Iterable[Counts]) -> Counts:
        """The sum of counts."""
        bad = runs = 0
        for part in parts:
            bad, runs = bad + part.bad, runs + part.runs
        return cls(bad, runs)

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.bad + other.bad, self.runs + other.runs)

    def __str__(self) -> str:
        return f"{self.bad} of {self.runs}"


@frozen
class Effect:
    """A number on both sides of a change: the medians `good` and `bad`, the difference bad - good and its interval.

    `confidence` is the confidence level of the interval from `low` to `high`. It is 0 if there were too few runs for an
    interval; then these are the smallest and the largest observed difference. `spread` is the range of the number on
    the side where it varies more. `is_clear`: the sides differ, by the interval, or, with few runs, by many times the
    spread.
    """

    good: float
    bad: float
    difference: float
    low: float
    high: float
    spread: float
    confidence: float
    good_runs: int
    bad_runs: int
    is_clear: bool = True


@frozen
class Candidate:
    """One candidate of a line, such as a release; `uploaded` is an ISO date, "" if unknown."""

    version: str
    uploaded: str = ""


@frozen
class Certainty:
    """How sure a boundary is.

    `confidence` is the probability that it is right, estimated from the runs; `good_side` and `bad_side` count the runs
    on both sides, and `effect` is the difference of a metric between them. `is_flaky`: one run did not tell good from
    bad. `trusts_ends`: the confidence holds only if the ends are as the user says.
    """

    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    is_flaky: bool = False
    trusts_ends: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether the runs of one side did not agree."""
        sides = [counts for counts in (self.good_side, self.bad_side) if counts is not None]
        return any(0 < counts.bad < counts.runs for counts in sides) or (len(sides) == 2 and sides[0].bad > 0)


@frozen
class Boundary:
    """What a search over a line found: two neighbours between which the verdict changes, and every run on the way.

    A side of `change` is None if that end lacks the package or is not known. `suspects` are the candidates that may
    have introduced it, a single one if it is certain; releases between the two that were not run are among them.
    `sides` are the runs just before and just after the change. `left_out` maps candidates that were not tried to the
    reason.
    `message` is the failure of the first bad one if that is another than the bad end's. `fault` says which internal
    error ended the search below it, "" if none did.
    """

    change: Change
    candidates: tuple[Candidate, ...] = ()
    suspects: tuple[str, ...] = ()
    sides: tuple[Observation, ...] = ()
    steps: tuple[Step, ...] = ()
    certainty: Certainty = Certainty()
    left_out: dict[str, str] = field(factory=dict)
    message: str = ""
    fault: str = ""

    @property
    def subject(self) -> str:
        """What the candidates are candidates of."""
        return self.change.name

    @property
    def is_fix(self) -> bool:
        """Whether the change is a fix."""
        return self.change.is_fix

    @property
    def moved(self) -> tuple[Change, ...]:
        """The difference of the locks of both sides, the largest version step first."""
        locks = [side.lock for side in self.sides if side.lock is not None]
        if len(locks) != 2 or self.change.unit == "commit":
            return ()
        return tuple(sorted(locks[0].diff(locks[1]), key=lambda change: (change.step, change.name)))

    @property
    def drift(self) -> dict[str, tuple[str, ...]]:
        """What of its environment could not be held, by candidate."""
        return {step.release: step.drift for step in self.steps if step.drift}

    @property
    def altered(self) -> dict[str, tuple[str, ...]]:
        """The files of its environment that a run changed, by candidate."""
        return {step.release: step.altered for step in self.steps if step.altered}

    @property
    def ends(self) -> tuple[str | None, str | None]:
        """The candidates just before and just after the change."""
        return (self.change.before, self.change.after)

    @property
    def by_verdict(self) -> dict[Verdict, Observation]:
        """The two sides of the change by their verdict, the older one first; empty unless both have run."""
        return dict(zip(verdicts_around(is_fix=self.is_fix), self.sides, strict=True)) if len(self.sides) == 2 else {}

    @property
    def is_certain(self) -> bool:
        """Whether the two candidates are neighbours and both have run."""
        return len(self.suspects) == 1 and len(self.sides) == 2

    @property
    def left_between(self) -> dict[str, str]:
        """The releases between the two that were not run, with the reason; pre-releases do not count."""
        older, newer = self.ends
        if not self.left_out or self.change.unit != "release" or older is None or newer is None:
            return {}
        low, high = sorted((Version(older), Version(newer)))
        versions = ((Version(text), text, why) for text, why in self.left_out.items())
        return {text: why for version, text, why in versions if low < version < high and not version.is_prerelease}

    @property
    def untried(self) -> dict[str, str]:
        """Those of `left_between` that may have introduced the change for others."""
        return {text: why for text, why in self.left_between.items() if not why.startswith(_NOBODY_HAS)}

    @property
    def as_fix(self) -> Boundary:
        """The same boundary between an older bad end and a newer good one, as a fix."""
        older = self.change.before
        return evolve(
            self,
            change=evolve(self.change.reversed, is_fix=True),
            candidates=self.candidates[::-1],
            suspects=(older,) if self.is_certain and older is not None else self.suspects,
            sides=self.sides[::-1],
        )

    def with_untried(self) -> Boundary:
        """Return it with the releases between the two that were not run as suspects, too."""
        untried = self.untried
        if not untried or not self.suspects:
            return self
        ends = list(filter(None, self.ends))
        is_up = ends == sorted(ends, key=version_order)
        suspects = sorted({*untried, *self.suspects}, key=version_order, reverse=not is_up)
        return evolve(self, suspects=tuple(suspects))

    @property
    def constraint(self) -> str:
        """The loosest constraint that keeps the subject on the good side, such as `numpy<2`; "" if there is none."""
        older, newer = self.ends
        if self.change.unit != "release" or (older is None and newer is None):
            return ""
        if self.is_fix:
            return f"{self.subject}>={_public(newer)}" if newer else ""
        # Below the first bad release there may be a yanked one, which nobody ran and which an exact pin still installs.
        is_next = not self.untried and not any(why.startswith("yanked") for why in self.left_between.values())
        return constraint_between(self.subject, older, newer, is_certain=len(self.suspects) == 1 and is_next)


def constraint_between(name: str, older: str | None, newer: str | None, *, is_certain: bool = True) -> str:
    """Return the loosest constraint that keeps a package at its last good version or below; "" if there is none."""
    if newer is None:  # the package is no longer there at the bad end
        return f"{name}=={older}"
    if older is None:
        return ""
    try:
        low, high = Version(older), Version(newer)
    except InvalidVersion:
        return f"{name}=={older}"
    if low.public == high.public:  # two builds of one release
        return f"{name}=={older}"
    if low > high:  # the bad end has the older release
        return f"{name}>={low.public}"
    return f"{name}<{_shortest(low, high)}" if is_certain else f"{name}<={low.public}"


def _public(version: str) -> str:
    """The version without its local label, which only `==` may compare with (PEP 440)."""
    parsed = parsed_version(version)
    return parsed.public if parsed is not None else version


def _shortest(older: Version, newer: Version) -> str:
    """Return the newer version without trailing zeros (2.0.0 is 2), unless that is not above the older one."""
    if newer.is_prerelease or newer.is_postrelease or newer.epoch:
        return newer.public
    parts = list(newer.release)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    text = ".".join(map(str, parts))
    return text if older < Version(text) else newer.public
