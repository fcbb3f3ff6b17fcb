"""The news of a night: headings with their lines, a one-line summary, the exit code, and the page of all nights."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.model.signature import normalized_message
from harness.model.text import counted
from harness.records import as_record
from harness.redact import Private, redacted
from harness.report.archive import Archive
from harness.report.page import Page
from harness.watch.state import (
    FOLDER,
    MOST_UNJUDGED,
    SCHEMA,
    Cause,
    CellState,
    CellStatus,
    Night,
    NightArchive,
    Past,
)

if TYPE_CHECKING:
    from pathlib import Path

    from harness.store import Store


NOTHING_NEW, SOMETHING_BROKE, NOT_JUDGED = 0, 1, 3


def report_of(cause: Cause) -> str:
    """Return the path of a cause's report, relative to the results folder."""
    return f"reports/{cause.id}.html"


def changed_causes(night: Night, past: Past) -> tuple[Cause, ...]:
    """Return the new and changed causes of a night, as they are at its end."""
    causes = past.after(night).causes
    return tuple(cause for cause in causes.values() if cause != past.causes.get(cause.id))


def night_record(night: Night, past: Past) -> dict[str, Any]:
    """Return a night with the new and changed causes as JSON."""
    breaks = [as_record(cause, SCHEMA) for cause in changed_causes(night, past)]
    for row in breaks:
        del row["schema"]
    return {**as_record(night, SCHEMA), **({"breaks": breaks} if breaks else {})}


def news_of(night: Night, past: Past) -> dict[str, tuple[str, ...]]:
    """Return the news of a night by heading, the most urgent first, without empty headings.

    A cell that was flaky with the same run, or could not be judged for the same reason, in the last night is not news.
    """
    before, last = past.cells(night.matrix), past.last.get(night.matrix)
    unjudged = {cell.name: normalized_message(cell.reason) for cell in last.cells} if last is not None else {}
    causes = changed_causes(night, past)
    older = [cause for cause in causes if cause.first_seen != night.start and cause.last_seen == night.start]

    def lines(status: CellStatus) -> list[str]:
        return [f"{cell.name}: {cell.reason}" for cell in night.cells if cell.standing is status and is_news(cell)]

    def is_news(cell: CellState) -> bool:
        was = before.get(cell.name)
        if cell.standing is CellStatus.FLAKY:
            return was is None or (was.standing, was.observation) != (cell.standing, cell.observation)
        # Paths and numbers change from night to night.
        is_unjudged = cell.standing is CellStatus.UNJUDGED
        return not is_unjudged or unjudged.get(cell.name) != normalized_message(cell.reason)

    unjudged_nights = len(past.after(night).unjudged[night.matrix])
    news = {
        "nothing judged": [f"no cell was judged in {unjudged_nights} nights in a row"]
        if unjudged_nights >= MOST_UNJUDGED
        else [],
        "newly broken": [_broken(cause) for cause in causes if cause.first_seen == night.start],
        "broken, cause not found yet": lines(CellStatus.TURNED),
        "broken again": [_broken(cause) for cause in older if _is_back(cause, past)],
        "known breaks that reached more cells": [_broken(cause) for cause in older if not _is_back(cause, past)],
        "fixed": [
            *filter(None, (_fixed(cause, night.start) for cause in causes)),
            *(
                f"{cell.name} is good now; it was broken before the first night"
                for cell in night.cells
                if cell.standing is CellStatus.GOOD
                and cell.name in before
                and before[cell.name].standing is CellStatus.BEFORE
            ),
        ],
        "flaky": lines(CellStatus.FLAKY),
        "could not be judged": lines(CellStatus.UNJUDGED),
        "left for tomorrow": [cell.name for cell in night.cells if cell.standing is CellStatus.LEFT],
    }
    return {heading: tuple(texts) for heading, texts in news.items() if texts}


def one_line(night: Night, past: Past) -> str:
    """Summarise the night in one line."""
    statuses = {cell.standing for cell in night.cells}
    if night.matrix not in past.last:
        lead = "first night, so there is nothing to compare with; "
        if CellStatus.BEFORE in statuses:
            lead += "cells that are already bad get no report; "
    else:
        lead = "" if news_of(night, past) else "nothing changed; "
    summary = f"{lead}{counted(len(night.cells), 'cell')}: {_counts(night)}; {night.ran} run now"
    return f"{night.matrix}, night of {night.start[:10]}: {summary}"


def exit_code(night: Night, past: Past) -> int:
    """Return 1 if something broke, broke again, or its cause is not found yet; 3 if no cell was judged; else 0."""
    causes = changed_causes(night, past)
    is_new = any(cause.first_seen == night.start or _is_back(cause, past) for cause in causes)
    if is_new or any(cell.standing is CellStatus.TURNED for cell in night.cells):
        return SOMETHING_BROKE
    return NOTHING_NEW if any(cell.standing.is_judged for cell in night.cells) else NOT_JUDGED


def _broken(cause: Cause) -> str:
    return f"{cause.sentence} Seen in {'; '.join(cause.cells)}"


def _is_back(cause: Cause, past: Past) -> bool:
    """Whether a cause that was closed, or fixed in one of its cells, is back."""
    before = past.causes.get(cause.id)
    if before is None or cause.last_seen == before.last_seen:
        return False
    lost = {fix.cell for fix in before.fixes} - {fix.cell for fix in cause.fixes}
    return bool(lost) or (cause.is_open and not before.is_open)


def _fixed(cause: Cause, start: str) -> str:
    """Return a sentence about the cells of a cause that are good again in a night, "" if there are none."""
    cells: dict[str, list[str]] = {}
    for fix in cause.fixes:
        if fix.night == start:
            cells.setdefault(fix.changed, []).append(fix.cell)
    parts = [f"{'; '.join(labels)} good again with {changed}" for changed, labels in cells.items()]
    if cause.closed == start:
        parts.append("no cell is broken by it any more")
    return f"{cause.title}: {', and '.join(parts)}" if parts else ""


def _counts(night: Night) -> str:
    counts = Counter(cell.standing for cell in night.cells)
    return ", ".join(f"{counts[status]} {status.value}" for status in CellStatus if counts[status])


def write_page(store: Store, private: Private) -> Path:
    """Write `nights/index.html` in the results folder; returns its path. Raises `NoSpace`."""
    content = nights_of(NightArchive(store).all(), Archive(store))
    return Page("nights", redacted(content, private)).write(store, f"{FOLDER}/index", "html")[0]


def nights_of(nights: tuple[Night, ...], archive: Archive) -> dict[str, Any]:
    """Return the content of the page: nights, the newest first, and causes. Links only to files that exist."""

    def link(path: str) -> str:
        return f"../{path}" if (archive.store.root / path).is_file() else ""

    past, rows, broken = Past(archive), list[dict[str, Any]](), dict[str, str]()
    for night in nights:
        rows.append(
            {
                "night": night,
                "page": link(f"matrices/{night.matrix}.html"),
                "day": night.start[:16].replace("T", " "),
                "state": {NOTHING_NEW: "good", SOMETHING_BROKE: "bad", NOT_JUDGED: "skip"}[exit_code(night, past)],
                "counts": _counts(night),
                "news": news_of(night, past),
                "quiet": "nothing changed" if night.matrix in past.last else "the first night: nothing to compare with",
            }
        )
        past = past.after(night)
        broken |= {cell.broken_by: night.start for cell in night.cells}
    causes: list[dict[str, Any]] = [
        {"break": cause, "report": link(report_of(cause)), "last_seen": broken.get(cause.id, cause.last_seen)}
        for cause in past.causes.values()
    ]
    return {
        "nights": rows[::-1],
        "open": [row for row in causes if row["break"].is_open],
        "closed": [row for row in causes if not row["break"].is_open],
    }
