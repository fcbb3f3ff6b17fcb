"""The head of an answer: what most readers want to know, in aligned columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.bisect.answer import Answer, Status
from harness.bisect.wording import place_of
from harness.model.text import listed_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

_WIDTH = len("First good") + 2


def print_head(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Print a line for each label with a text. Long texts are not cut, because people copy them."""
    for label, text in rows:
        if text:
            console.print(Text.assemble((f"{label:<{_WIDTH}}", "bold"), text), soft_wrap=True)


def head_of(answer: Answer) -> list[tuple[str, str]]:
    """The rows for an answer about one project's releases."""
    if answer.status not in (Status.FOUND, Status.FIXED, Status.INCONCLUSIVE):
        return []
    if answer.status is Status.FIXED:
        ends = [("Last bad", _named(answer, answer.last_bad)), ("Fixed in", _named(answer, answer.first_good))]
    else:
        ends = [("Last good", _named(answer, answer.last_good)), ("First bad", _named(answer, answer.first_bad))]
    suspects = listed_in_order((release, True) for release in answer.suspects) if len(answer.suspects) > 1 else ""
    return [*ends, ("Suspects", suspects), _culprit(answer), ("Until then", answer.constraint)]


def _named(answer: Answer, release: str | None) -> str:
    return f"{answer.subject} {release}" if release else ""


def _culprit(answer: Answer) -> tuple[str, str]:
    """The label and text for the finest culprit; it is a suspect if it is not proved."""
    if answer.culprit is None:
        return "Culprit", ""
    finest = answer.culprit.finest
    label = "Suspect" if not finest.is_proved else "The fix" if answer.status is Status.FIXED else "Culprit"
    return label, place_of(finest)
