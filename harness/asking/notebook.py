"""An answer in a notebook: the sentence, the culprits and the workaround, and the runs folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.asking.wording import place_of
from harness.model.text import counted, sentence_and_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.asking.answer import Answer


def html_of(answer: Answer) -> str:
    """Return the HTML of an answer, with every text escaped."""
    head = sentence_and_table(answer.sentence, (), tuple(_rows(answer)))
    if not answer.steps:
        return head
    runs = [(step.release, step.verdict.word, step.reason, f"{step.seconds:.1f}") for step in answer.steps]
    table = sentence_and_table("", ("release", "verdict", "reason", "seconds"), runs)
    return f"{head}<details><summary>{counted(len(runs), 'run')}</summary>{table}</details>"


def _rows(answer: Answer) -> Iterator[tuple[str, str]]:
    for culprit in answer.culprits:
        label = "The fix" if culprit.boundary.is_fix else "Culprit"
        release = culprit.boundary.ends[1] or "(removed)"
        where = place_of(culprit.deeper.finest) if culprit.deeper is not None else f"{culprit.package} {release}"
        yield label if culprit.is_proved else "Suspect", where
    if answer.constraints:
        yield "Workaround", answer.constraint + (" (a run with them passed)" if answer.constraints_verified else "")
