"""A search is ask-and-tell: it says what is worth trying next, is told the verdicts, and knows no more."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from harness.model.verdict import Verdict

C = TypeVar("C", bound=Hashable)


class Search(Protocol[C]):
    """What the engine knows of a search over candidates of type C.

    Each search also has a `result` of its own type, which can be read at any time.
    """

    def ask(self, n: int = 1) -> tuple[C, ...]:
        """Up to n candidates worth running at the same time now, the most worth first.

        None of them was told. Asking again before the next `tell` gives the same ones. A candidate that
        was asked and is missing from a later answer has become useless: its run can be stopped.
        """

    def foresee(self, n: int) -> tuple[C, ...]:
        """Up to n candidates that may be asked later, the most likely first, none that `ask` gives."""

    def tell(self, candidate: C, verdict: Verdict) -> None:
        """Record a verdict, also of a candidate that was never asked.

        Raises ValueError if the candidate is not one of this search, or was told another verdict.
        """

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""

    def remaining(self) -> int:
        """Upper estimate of the runs left, asked one at a time, should none of them be skipped."""


def record(told: dict[C, Verdict], candidate: C, verdict: Verdict) -> None:
    """Add one verdict to what was told; a ValueError if another verdict was told before."""
    before = told.setdefault(candidate, verdict)
    if before is not verdict:
        raise ValueError(f"{candidate!r} was told {before.value} before, and now {verdict.value}")
