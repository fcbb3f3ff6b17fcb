"""An answer in a notebook: the sentence, the culprits and the workaround, and the runs folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.asking.head import head_of
from harness.model.text import counted, sentence_and_table

if TYPE_CHECKING:
    from harness.asking.answer import Answer


def html_of(answer: Answer) -> str:
    """Return the HTML of an answer, with every text escaped."""
    head = sentence_and_table(answer.sentence, (), tuple(head_of(answer)))
    if not answer.steps:
        return head
    runs = [(step.release, step.verdict.word, step.reason, f"{step.seconds:.1f}") for step in answer.steps]
    table = sentence_and_table("", ("release", "verdict", "reason", "seconds"), runs)
    return f"{head}<details><summary>{counted(len(runs), 'run')}</summary>{table}</details>"
