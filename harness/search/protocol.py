"""The ask-and-tell interface of a search: `ask` returns candidates to try next, `tell` records a verdict.

Here is also what searches share: the trial, the result of a search over a line, the states of positions for display,
and the simplest search, a grid.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Protocol, TypeVar

from attrs import field, frozen, validators

from harness.model.boundary import Counts, Effect
from harness.model.verdict import Verdict

C = TypeVar("C", bound=Hashable)


class Search(Protocol[C]):
    """The interface of a search over candidates of type C.

    Each search also has a `result` of its own type, which can be read at any time.
    """

    def ask(self, n: int = 1) -> tuple[C, ...]:
        """Up to n candidates to run now, at the same time, the most useful first.

        None of them has a verdict. A second call before the next `tell` returns the same ones. If an earlier candidate
        is missing from a later answer, it is no longer useful, and its run can be stopped.
        """

    def foresee(self, n: int) -> tuple[C, ...]:
        """Up to n candidates that may be requested later, the most likely first; none that `ask` returns."""

    def tell(self, candidate: C, verdict: Verdict) -> None:
        """Record a verdict, also for a candidate that was never requested.

        Raises ValueError if the candidate does not belong to this search, or has a different verdict already.
        """

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""

    def remaining(self) -> int:
        """Upper estimate of the runs left, if they run one at a time and none is skipped."""


def record(verdicts: dict[C, Verdict], candidate: C, verdict: Verdict) -> None:
    """Add a verdict to `verdicts`. Raises ValueError if the candidate has a different one already."""
    before = verdicts.setdefault(candidate, verdict)
    if before is not verdict:
        raise ValueError(f"{candidate!r} was told {before.value} before, and now {verdict.value}")


def entropy(chance: float) -> float:
    """The entropy in bits of a question that is answered yes with this probability."""
    if not 0 < chance < 1:
        return 0.0
    return -chance * math.log2(chance) - (1 - chance) * math.log2(1 - chance)


@frozen(order=True)
class Trial:
    """One run at a position (0 is the oldest); attempts above 0 repeat it to confirm its verdict."""

    position: int = field(validator=validators.ge(0))
    attempt: int = field(default=0, validator=validators.ge(0))


class LineStatus(enum.StrEnum):
    """How a search over a line ended."""

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
    """The good or bad end (`end`), moved inward from `given` to `used` because it could not be tested."""

    end: Verdict
    given: int
    used: int


@frozen
class LineResult:
    """What is known, final once `status` is not OPEN. Positions are numbered from 0, the oldest.

    `boundary` has the older and the newer side of the change, as soon as both have run. `suspects` are the positions
    that may have introduced the change: its newer side, and everything between the sides. `flaky` are the positions
    with two different verdicts. `confidence` is the probability that the answer is right (0 to 1, None if it was not
    computed); `good_side` and `bad_side` are the runs behind it. `effect` is the difference between the sides if the
    bug is recognised by a number. `trusts_ends`: the confidence holds only if the ends are as the user says.
    """

    status: LineStatus
    boundary: tuple[int, int] | None = None
    suspects: tuple[int, ...] = ()
    moved_ends: tuple[MovedEnd, ...] = ()
    flaky: tuple[int, ...] = ()
    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    trusts_ends: bool = False


class PositionState(enum.StrEnum):
    """What a search knows about a position; `symbol` is its letter in a picture such as [G, ?, ?, B]."""

    UNTRIED = "untried"
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    EXCLUDED = "excluded"  # not run, and its verdict can no longer matter

    @property
    def symbol(self) -> str:
        """One character for display."""
        return "?GBS-"[list(PositionState).index(self)]


def state_of(verdict: Verdict | None, *, matters: bool) -> PositionState:
    """The state of a position with this verdict (None: not run); `matters`: its verdict can still matter."""
    if verdict is not None:
        return PositionState(verdict.value)
    return PositionState.UNTRIED if matters else PositionState.EXCLUDED


class Grid:
    """Search over positions 0 to count - 1; its candidates are positions. Raises ValueError if `count` is negative."""

    def __init__(self, count: int) -> None:
        if count < 0:
            raise ValueError("a grid can't have fewer than no positions")
        self._count = count
        self._verdicts: dict[int, Verdict] = {}

    def ask(self, n: int = 1) -> tuple[int, ...]:
        """The first n positions without a verdict."""
        return self._untried()[: max(n, 0)]

    def foresee(self, n: int) -> tuple[int, ...]:
        """The n positions without a verdict after the first one."""
        return self._untried()[1 : 1 + max(n, 0)]

    def tell(self, candidate: int, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict."""
        if not 0 <= candidate < self._count:
            raise ValueError(f"position {candidate} is not in a grid of {self._count}")
        record(self._verdicts, candidate, verdict)

    @property
    def done(self) -> bool:
        """Whether every position has a verdict."""
        return len(self._verdicts) == self._count

    def remaining(self) -> int:
        """The number of positions without a verdict."""
        return self._count - len(self._verdicts)

    @property
    def result(self) -> dict[int, Verdict]:
        """The recorded verdicts, by position."""
        return dict(sorted(self._verdicts.items()))

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display."""
        return tuple(state_of(self._verdicts.get(position), matters=True) for position in range(self._count))

    def _untried(self) -> tuple[int, ...]:
        return tuple(position for position in range(self._count) if position not in self._verdicts)


def foresee(n: int, *, plan: Callable[[Mapping[C, Verdict]], tuple[C, ...]], requested: Collection[C]) -> tuple[C, ...]:
    """Up to n candidates that may follow the `requested` ones, those that need the fewest further verdicts first.

    `plan` returns what the search requests if the given verdicts are added to the recorded ones, nothing if it is then
    done. The first request of each plan is supposed to be bad or good, in a small multiple of n steps, so the result
    may be shorter than n.
    """
    following: dict[C, None] = {}
    paths: deque[dict[C, Verdict]] = deque([{}])
    for _ in range(8 * n + 4 * len(requested) + 16):
        if not paths or len(following) >= n:
            break
        supposed = paths.popleft()
        wanted = plan(supposed)
        following |= dict.fromkeys(candidate for candidate in wanted if candidate not in requested)
        paths += [{**supposed, wanted[0]: verdict} for verdict in (Verdict.BAD, Verdict.GOOD) if wanted]
    return tuple(following)[: max(n, 0)]
