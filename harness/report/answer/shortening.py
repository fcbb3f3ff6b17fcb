"""Shortens a report to fit into an issue: drops details, never the answer, its proofs or the repro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.report.answer.content import ReportContent

ISSUE_LIMIT = 65_536  # GitHub's limit in characters


def shortened(content: ReportContent, render: Callable[[ReportContent], str], limit: int = ISSUE_LIMIT) -> str:
    """Return the text of a report in at most `limit` characters, or longer if dropping all details is not enough.

    The text says what was left out.
    """
    text = render(content)
    gone: list[str] = []
    rest = dict(_DETAILS)
    while len(text) > limit and rest:
        without = {name: leave_out(content) for name, leave_out in rest.items()}
        lengths = {name: len(render(one)) for name, one in without.items()}
        name = min(rest, key=lambda name: lengths[name])
        del rest[name]
        if lengths[name] >= len(render(content)):
            continue
        content = without[name]
        gone.append(name)
        told = f"Left out for their length: {', '.join(gone)}; the HTML and JSON reports have them."
        text = render(evolve(content, not_tried=(*content.not_tried, told)))
    return text


_DETAILS: dict[str, Callable[[ReportContent], ReportContent]] = {
    "the full locks": lambda content: evolve(content, sides=tuple(evolve(side, lock="") for side in content.sides)),
    "the steps": lambda content: evolve(content, steps=(), levels=()),
    "releases that were not tried": lambda content: evolve(content, left_out=()),
    "the difference of the locks": lambda content: evolve(content, lock_changes=(), drift=()),
    "the files that runs changed": lambda content: evolve(content, altered=()),
    "the traceback": lambda content: evolve(content, traceback=""),
    "the changed lines": lambda content: evolve(content, hunks=()),
    "the table of versions": lambda content: evolve(content, versions=()),
}
