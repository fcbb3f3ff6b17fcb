"""The news of a night: headings with their lines, a one-line summary, the exit code, and the page of all nights."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.model.signature import normalized_message
from harness.model.text import counted
from harness.redact import Private, redacted
from harness.report.page import Page
from harness.watch.record import FOLDER, Break, CellRecord, CellStatus, Night, NightArchive, Past

if TYPE_CHECKING:
    from pathlib import Path

    from harness.store import Store


NOTHING_NEW, SOMETHING_BROKE, NOT_JUDGED = 0, 1, 3


def report_of(known: Break) -> str:
    """Return the path of a break's report, relative to the results folder."""
    return f"reports/{known.id}.html"


def news_of(night: Night, past: Past) -> dict[str, tuple[str, ...]]:
    """Return the news of a night by heading, the most urgent first, without empty headings.

    A cell that was flaky with the same run, or could not be judged for the same reason, in the last night is not news.
    """
    cells = {cell.name: cell for cell in night.cells}
    new = [known for known in night.breaks if known.first_seen == night.start]
    older = [known for known in night.breaks if known.first_seen != night.start]
    found = {
        "newly broken": [_broken(known) for known in new],
        "broken, cause not found yet": [_line(cell) for cell in _with(night, CellStatus.TURNED)],
        "broken again": [_broken(known) for known in older if _is_back(known, night, past)],
        "known breaks that reached more cells": [
            _broken(known) for known in older if known.last_seen == night.start and not _is_back(known, night, past)
        ],
        "fixed": [
            *(line for known in night.breaks if (line := _fixed(known, night.start))),
            *(
                f"{cell.name} is good now; it was broken before the first night"
                for name, cell in cells.items()
                if cell.standing is CellStatus.GOOD
                and name in past.cells
                and past.cells[name].standing is CellStatus.BEFORE
            ),
        ],
        "flaky": [_line(cell) for cell in _with(night, CellStatus.FLAKY) if not _was_flaky(past, cell)],
        "could not be judged": [
            _line(cell) for cell in _with(night, CellStatus.UNJUDGED) if not _was_unjudged(past, cell)
        ],
        "left for tomorrow": [cell.name for cell in _with(night, CellStatus.LEFT)],
    }
    return {heading: tuple(lines) for heading, lines in found.items() if lines}


def one_line(night: Night, past: Past) -> str:
    """Summarise the night in one line."""
    if past.last is None:
        compared = bool(night.breaks) or bool(_with(night, CellStatus.TURNED))
        lead = "first night; " if compared else "first night, so there is nothing to compare with; "
        if _with(night, CellStatus.BEFORE):
            lead += "cells that are already bad get no report; "
    else:
        lead = "" if news_of(night, past) else "nothing changed; "
    told = f"{lead}{counted(len(night.cells), 'cell')}: {_counts(night)}; {night.ran} run now"
    return f"{night.matrix}, night of {night.start[:10]}: {told}"


def exit_code(night: Night, past: Past) -> int:
    """Return 1 if something broke, broke again, or its cause is not found yet; 3 if no cell was judged; else 0."""
    is_new = any(known.first_seen == night.start or _is_back(known, night, past) for known in night.breaks)
    if is_new or _with(night, CellStatus.TURNED):
        return SOMETHING_BROKE
    return NOTHING_NEW if any(cell.standing.is_judged for cell in night.cells) else NOT_JUDGED


def _broken(known: Break) -> str:
    return f"{known.sentence} Seen in {'; '.join(known.cells)}"


def _is_back(known: Break, night: Night, past: Past) -> bool:
    """Whether a break that was closed, or fixed in one of its cells, is back."""
    before = past.breaks.get(known.id)
    if before is None or known.last_seen != night.start:
        return False
    lost = {fix.cell for fix in before.fixes} - {fix.cell for fix in known.fixes}
    return bool(lost) or (known.is_open and not before.is_open)


def _fixed(known: Break, start: str) -> str:
    """Return a sentence about the cells of a break that are good again in a night, "" if there are none."""
    parts = [f"{'; '.join(cells)} good again with {what}" for (what, night), cells in _fixes(known) if night == start]
    if known.closed == start:
        parts.append("no cell is broken by it any more")
    return f"{known.title}: {', and '.join(parts)}" if parts else ""


def _counts(night: Night) -> str:
    counts = Counter(cell.standing for cell in night.cells)
    return ", ".join(f"{counts[standing]} {standing.value}" for standing in CellStatus if counts[standing])


def _with(night: Night, standing: CellStatus) -> list[CellRecord]:
    return [cell for cell in night.cells if cell.standing is standing]


def _line(cell: CellRecord) -> str:
    return f"{cell.name}: {cell.reason}"


def _was_unjudged(past: Past, cell: CellRecord) -> bool:
    """Whether the last night gave the same reason, apart from paths and numbers."""
    before = past.unjudged.get(cell.name)
    return before is not None and normalized_message(before) == normalized_message(cell.reason)


def _was_flaky(past: Past, cell: CellRecord) -> bool:
    before = past.cells.get(cell.name)
    return before is not None and before.standing is CellStatus.FLAKY and before.observation == cell.observation


def facts_of_break(known: Break) -> tuple[tuple[str, str], ...]:
    """Return the facts that nights add to a break's report, as label and text."""
    facts = [("Seen in", "; ".join(known.cells)), ("First seen", f"in the night of {known.first_seen[:10]}")]
    if known.last_seen != known.first_seen:
        facts.append(("Last spread", f"in the night of {known.last_seen[:10]}"))
    facts += [
        ("Good again", f"with {what}, in the night of {night[:10]} ({'; '.join(cells)})")
        for (what, night), cells in _fixes(known)
    ]
    if known.closed:
        facts.append(("Closed", f"in the night of {known.closed[:10]}: no cell is broken by it any more"))
    return tuple(facts)


def _fixes(known: Break) -> list[tuple[tuple[str, str], list[str]]]:
    """Return the cells that are good again, by what changed and the night."""
    cells: dict[tuple[str, str], list[str]] = {}
    for fix in known.fixes:
        cells.setdefault((fix.changed, fix.night), []).append(fix.cell)
    return list(cells.items())


def write_page(store: Store, private: Private) -> Path:
    """Write `nights/index.html` in the results folder; returns its path. Raises `NoSpace`."""
    nights = NightArchive(store).all()
    page = Page("nights", redacted(nights_of(nights, store.root), private))
    return page.write(store, f"{FOLDER}/index", "html")[0]


def nights_of(nights: tuple[Night, ...], results: Path) -> dict[str, Any]:
    """Return the content of the page: nights, the newest first, and breaks. Links only to files that exist."""
    nights_by_time = [(night, Past.of(nights[:number], night.matrix)) for number, night in enumerate(nights)]
    known = [_break_row(one, nights, results) for one in Past.of(nights, "").breaks.values()]
    return {
        "nights": [_night_row(night, past, results) for night, past in reversed(nights_by_time)],
        "open": [row for row in known if row["break"].is_open],
        "closed": [row for row in known if not row["break"].is_open],
    }


def _night_row(night: Night, past: Past, results: Path) -> dict[str, Any]:
    page = f"matrices/{night.matrix}.html"
    return {
        "night": night,
        "page": f"../{page}" if (results / page).is_file() else "",
        "day": night.start[:16].replace("T", " "),
        "state": {NOTHING_NEW: "good", SOMETHING_BROKE: "bad", NOT_JUDGED: "skip"}[exit_code(night, past)],
        "counts": _counts(night),
        "news": news_of(night, past),
        "quiet": "nothing changed" if past.last else "the first night: nothing to compare with",
    }


def _break_row(known: Break, nights: tuple[Night, ...], results: Path) -> dict[str, Any]:
    seen = [night.start for night in nights if any(cell.broken_by == known.id for cell in night.cells)]
    report = report_of(known)
    return {
        "break": known,
        "report": f"../{report}" if (results / report).is_file() else "",
        "last_seen": max(seen, default=known.last_seen),
    }
