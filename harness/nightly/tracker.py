"""One issue for each break in the own repository: what has to be opened, updated, closed or opened again. Pure."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.nightly.record import Break

LABEL = "harness-nightly"
_MARKER = re.compile(r"<!-- harness-break: ([0-9a-f]+) -->")
_MOST = 60_000  # of the 65,536 characters that GitHub takes; the rest is for what stands around the report


@frozen
class Issue:
    """An issue as the tracker has it."""

    number: int
    title: str
    body: str
    is_open: bool

    @property
    def break_id(self) -> str:
        """The break that it is about, "" where it has no marker."""
        marker = _MARKER.search(self.body)
        return marker[1] if marker else ""


class Deed(enum.StrEnum):
    """What is done to the tracker."""

    OPEN = "open"
    UPDATE = "update"
    CLOSE = "close"
    REOPEN = "reopen"


@frozen
class Action:
    """One deed; `number` is 0 for an issue that is not there yet."""

    deed: Deed
    title: str
    number: int = 0
    body: str = ""


def actions(breaks: Iterable[Break], reports: Mapping[str, str], issues: Iterable[Issue]) -> tuple[Action, ...]:
    """What brings the tracker to the state of the breaks; nothing where it is so already.

    `reports` maps ids of breaks to their reports in Markdown. A break that was closed before it had an issue gets none.
    """
    there = {issue.break_id: issue for issue in sorted(issues, key=lambda issue: -issue.number) if issue.break_id}
    found: list[Action] = []
    for known in sorted(breaks, key=lambda known: (known.first_seen, known.id)):
        title, body = known.title, body_of(known, reports.get(known.id, ""))
        issue = there.get(known.id)
        if issue is None:
            found += [Action(Deed.OPEN, title, body=body)] if known.is_open else []
            continue
        if known.is_open and not issue.is_open:
            found.append(Action(Deed.REOPEN, title, issue.number))
        if issue.title != title or issue.body.replace("\r\n", "\n").strip() != body.strip():
            found.append(Action(Deed.UPDATE, title, issue.number, body))
        if issue.is_open and not known.is_open:
            found.append(Action(Deed.CLOSE, title, issue.number))
    return tuple(found)


def body_of(known: Break, report: str) -> str:
    """An issue's text: the marker, what is known, the cells, the fixes, and the report if there is room for it."""
    lines = [f"<!-- harness-break: {known.id} -->", "", known.sentence, "", "Cells:", ""]
    lines += [f"- `{cell}`" for cell in known.cells]
    if known.fixes:
        lines += ["", "Fixed:", ""]
        lines += [f"- `{fix.cell}` by {fix.by}, in the night of {fix.night[:10]}" for fix in known.fixes]
    if known.closed:
        lines += ["", f"No cell is broken by it any more, since the night of {known.closed[:10]}."]
    lines += ["", f"First seen in the night of {known.first_seen[:10]}."]
    head = "\n".join(lines)
    if report and len(head) + len(report) <= _MOST:
        return f"{head}\n\n---\n\n{report.rstrip()}\n"
    return f"{head}\n\nThe report is `reports/{known.id}.md` in the results.\n"
