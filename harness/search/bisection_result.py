"""What a bisection is asked for and what it answers: frozen values."""

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

    OPEN = "open"  # it has not ended
    FOUND = "found"  # last good and first bad are neighbours
    FIXED = "fixed"  # last bad and first good are neighbours
    NOT_A_REGRESSION = "not-a-regression"  # the oldest that can be tested is bad too
    NO_FAILURE = "no-failure"  # the bad end is good
    NOT_FIXED = "not-fixed"  # the newest that can be tested is bad too
    INCONCLUSIVE = "inconclusive"  # skipped positions hide the change: see the suspects
    FLAKY = "flaky"  # a side of the change gave two verdicts


@frozen
class MovedEnd:
    """An end that could not be tested: the end `end` moved from one position inward to another."""

    end: Verdict
    asked: int
    used: int


@frozen
class BisectionResult:
    """What is known, complete once `status` is not OPEN. All numbers are positions, 0 the oldest.

    A regression fills `last_good` and `first_bad`, a fix `last_bad` and `first_good`, as soon as both
    sides were run. `suspects` are the positions that may have brought the change: the newer side of it,
    and all that lie between the sides. `skipped` are all skipped positions between the ends. `flaky` are
    those with two verdicts. `confidence` is the chance that the answer is right, as far as the runs tell (0 to 1, None
    where nothing was computed), `good_side` and `bad_side` the runs behind it on both sides of the change. `effect` is
    how far the number differs between the two sides, where the bug is recognised by one. `trusts_ends`: the confidence
    holds only if the ends are as the user says.
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
        """The older and the newer side of the change, None if there is none."""
        if self.last_good is not None and self.first_bad is not None:
            return self.last_good, self.first_bad
        if self.last_bad is not None and self.first_good is not None:
            return self.last_bad, self.first_good
        return None
