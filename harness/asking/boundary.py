"""What a search over a line found: two neighbours between which the verdict changes, and the constraint for it."""

from __future__ import annotations

from attrs import evolve, field, frozen
from packaging.version import InvalidVersion, Version

from harness.model import Change, Observation
from harness.model.verdict import Step
from harness.search import Counts, Effect


@frozen
class Candidate:
    """One candidate of a line, such as a release; `uploaded` is an ISO date, "" if unknown."""

    version: str
    uploaded: str = ""


@frozen
class Boundary:
    """What a search over a line found: two neighbours between which the verdict changes, and every run on the way.

    `subject` is what the candidates are candidates of; they are releases, commits or Pythons, as `unit` says.
    `last_good` and `first_bad` are set for a regression, `last_bad` and `first_good` for a fix; None if that end lacks
    the package or is not known. `suspects` are the candidates that may have introduced the change, a single one if it
    is certain. `since` is the first one that fails as the bad end does, if that is not the first bad one; `message` is
    the failure of the first bad one. `sides` are the runs just before and just after the change. `confidence` is the
    probability that the boundary is right, estimated from the runs; `good_side` and `bad_side` count the runs on both
    sides, and `effect` is the difference of a metric between them; `is_flaky` says that one run did not tell good from
    bad. `left_out` maps candidates that were not tried to the reason, `drift` candidates to what could not be held,
    and `altered` to the files of its environment that a run changed. `moved` is the difference of the sides' locks.
    """

    subject: str
    unit: str = "release"
    candidates: tuple[Candidate, ...] = ()
    last_good: str | None = None
    first_bad: str | None = None
    last_bad: str | None = None
    first_good: str | None = None
    suspects: tuple[str, ...] = ()
    since: str | None = None
    message: str = ""
    sides: tuple[Observation, ...] = ()
    steps: tuple[Step, ...] = ()
    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    is_flaky: bool = False
    left_out: dict[str, str] = field(factory=dict)
    drift: dict[str, tuple[str, ...]] = field(factory=dict)
    altered: dict[str, tuple[str, ...]] = field(factory=dict)
    moved: tuple[Change, ...] = ()

    @property
    def is_fix(self) -> bool:
        """Whether the change is from bad to good."""
        return self.last_bad is not None or self.first_good is not None

    @property
    def ends(self) -> tuple[str | None, str | None]:
        """The candidates just before and just after the change."""
        return (self.last_bad, self.first_good) if self.is_fix else (self.last_good, self.first_bad)

    def with_change(self, older: str | None, newer: str | None, *, is_fix: bool) -> Boundary:
        """Return the boundary with the change between these candidates: a fix, or else a regression."""
        if is_fix:
            return evolve(self, last_bad=older, first_good=newer, last_good=None, first_bad=None)
        return evolve(self, last_good=older, first_bad=newer, last_bad=None, first_good=None)

    @property
    def is_certain(self) -> bool:
        """Whether the two candidates are neighbours and both have run."""
        return len(self.suspects) == 1 and len(self.sides) == 2

    def lean(self) -> Boundary:
        """Return the boundary without what the stored observations have."""
        return evolve(self, sides=tuple(map(lean_run, self.sides)))

    @property
    def untried(self) -> dict[str, str]:
        """The releases between the two that were not run, with the reason; pre-releases do not count."""
        older, newer = self.ends
        if not self.left_out or self.unit != "release" or older is None or newer is None:
            return {}
        low, high = sorted((Version(older), Version(newer)))
        known = ((Version(text), text, why.partition(":")[0]) for text, why in self.left_out.items())
        return {text: why for one, text, why in known if low < one < high and not one.is_prerelease}

    @property
    def constraint(self) -> str:
        """The loosest constraint that keeps the subject on the good side, such as `numpy<2`; "" if there is none."""
        older, newer = self.ends
        if self.unit != "release" or (older is None and newer is None):
            return ""
        if self.is_fix:
            return f"{self.subject}>={self.first_good}" if self.first_good else ""
        has_gap = any(why.startswith("no wheel") for why in self.untried.values())
        return constraint_between(self.subject, older, newer, is_certain=len(self.suspects) == 1 and not has_gap)


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
    if low > high:  # the bad end has the older release
        return f"{name}>={older}"
    return f"{name}<{_shortest(low, high)}" if is_certain else f"{name}<={older}"


def _shortest(older: Version, newer: Version) -> str:
    """Return the newer version without trailing zeros (2.0.0 is 2), unless that is not above the older one."""
    if newer.is_prerelease or newer.is_postrelease or newer.epoch:
        return str(newer)
    parts = list(newer.release)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    text = ".".join(map(str, parts))
    return text if older < Version(text) else str(newer)


def lean_run(observation: Observation) -> Observation:
    """Return a run without what its stored observation has."""
    return evolve(observation, loaded={}, trace=None)
