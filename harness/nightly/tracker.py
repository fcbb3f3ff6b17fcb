"""One issue per break in this repository: which to open, update, close or reopen. Pure."""

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
_MOST = 60_000  # GitHub's limit is 65,536 characters; the rest is for the text around the report


@frozen
class Issue:
    """An issue in the tracker."""

    number: int
    title: str
    body: str
    is_open: bool

    @property
    def break_id(self) -> str:
        """The id of its break, "" if it has no marker."""
        marker = _MARKER.search(self.body)
        return marker[1] if marker else ""


class ActionKind(enum.StrEnum):
    """The kind of an action."""

    OPEN = "open"
    UPDATE = "update"
    CLOSE = "close"
    REOPEN = "reopen"


@frozen
class Action:
    """One change to the tracker; `number` is 0 for an issue that does not exist yet."""

    kind: ActionKind
    title: str
    number: int = 0
    body: str = ""


def actions(breaks: Iterable[Break], reports: Mapping[str, str], issues: Iterable[Issue]) -> tuple[Action, ...]:
    """Return the actions that make the tracker match the breaks; none if it already does.

    `reports` maps break ids to reports in Markdown. A break that was closed before it had an issue gets none.
    """
    there = {issue.break_id: issue for issue in sorted(issues, key=lambda issue: -issue.number) if issue.break_id}
    found: list[Action] = []
    for known in sorted(breaks, key=lambda known: (known.first_seen, known.id)):
        title, body = known.title, body_of(known, reports.get(known.id, ""))
        issue = there.get(known.id)
        if issue is None:
            found += [Action(ActionKind.OPEN, title, body=body)] if known.is_open else []
            continue
        if known.is_open and not issue.is_open:
            found.append(Action(ActionKind.REOPEN, title, issue.number))
        if issue.title != title or issue.body.replace("\r\n", "\n").strip() != body.strip():
            found.append(Action(ActionKind.UPDATE, title, issue.number, body))
        if issue.is_open and not known.is_open:
            found.append(Action(ActionKind.CLOSE, title, issue.number))
    return tuple(found)


def body_of(known: Break, report: str) -> str:
    """Return the text of an issue: marker, sentence, cells, fixes, and the report if it fits."""
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
    return f"{head}\n\nThe report is `reports/{known.id}.md` in the results folder.\n"
