"""The ask-and-tell interface of a search: `ask` returns candidates to try next, `tell` records a verdict."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
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


def record(told: dict[C, Verdict], candidate: C, verdict: Verdict) -> None:
    """Add a verdict to `told`. Raises ValueError if the candidate has a different one already."""
    before = told.setdefault(candidate, verdict)
    if before is not verdict:
        raise ValueError(f"{candidate!r} was told {before.value} before, and now {verdict.value}")
