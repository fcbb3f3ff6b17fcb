"""The values that a bisection requests and returns."""

from __future__ import annotations

import enum

from attrs import field, frozen, validators

from harness.model.verdict import Verdict  # at run time: cattrs reads the fields' types
from harness.search.effect import Effect
from harness.search.posterior import Counts


@frozen(order=True)
class Trial:
    """One run at a position (0 is the oldest); attempts above 0 repeat it to confirm its verdict."""

    position: int = field(validator=validators.ge(0))
    attempt: int = field(default=0, validator=validators.ge(0))


class BisectionStatus(enum.StrEnum):
    """How a bisection ended."""

    OPEN = "open"  # not ended yet
    FOUND = "found"  # last good and first bad are neighbours
    FIXED = "fixed"  # last bad and first good are neighbours
    NOT_A_REGRESSION = "not-a-regression"  # the oldest testable position is bad too
    NO_FAILURE = "no-failure"  # the bad end is good
    NOT_FIXED = "not-fixed"  # the newest testable position is bad too
    INCONCLUSIVE = "inconclusive"  # skipped positions hide the change: see the suspects
    FLAKY = "flaky"  # a side of the change has two different verdicts


@frozen
class MovedEnd:
    """The good or bad end (`end`), moved inward from `asked` to `used` because it could not be tested."""

    end: Verdict
    asked: int
    used: int


@frozen
class BisectionResult:
    """What is known, final once `status` is not OPEN. Positions are numbered from 0, the oldest.

    A regression sets `last_good` and `first_bad`, a fix sets `last_bad` and `first_good`, as soon as both sides have
    run. `suspects` are the positions that may have introduced the change: its newer side, and everything between the
    sides. `skipped` are all skipped positions between the ends, `flaky` the positions with two different verdicts.
    `confidence` is the probability that the answer is right (0 to 1, None if it was not computed); `good_side` and
    `bad_side` are the runs behind it. `effect` is the difference between the sides if the bug is recognised by a
    number. `trusts_ends`: the confidence holds only if the ends are as the user says.
    """

    status: BisectionStatus
    last_good: int | None = None
    first_bad: int | None = None
    last_bad: int | None = None
    first_good: int | None = None
    suspects: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    moved_ends: tuple[MovedEnd, ...] = ()
    flaky: tuple[int, ...] = ()
    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    trusts_ends: bool = False

    @property
    def boundary(self) -> tuple[int, int] | None:
        """The positions of the older and the newer side of the change, None if none was found."""
        if self.last_good is not None and self.first_bad is not None:
            return self.last_good, self.first_bad
        if self.last_bad is not None and self.first_good is not None:
            return self.last_bad, self.first_good
        return None
