"""The overview page of all nights: results, known breaks, and links to reports and matrix pages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from harness.nightly.archive import FOLDER, NightArchive
from harness.nightly.news import NOT_JUDGED, NOTHING_NEW, SOMETHING_BROKE, exit_code, news_of, report_of
from harness.nightly.record import Past, Standing
from harness.report import Private, redacted
from harness.report.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from harness.nightly.record import Break, Night
    from harness.store import Store


@frozen
class NightRow:
    """One night on the page."""

    matrix: str
    page: str
    day: str
    state: str
    counts: str
    news: tuple[tuple[str, tuple[str, ...]], ...]
    spent: str
    quiet: str = "nothing changed"


@frozen
class BreakRow:
    """One break on the page; `report` is the path of its report, or ""."""

    title: str
    report: str
    sentence: str
    cells: tuple[str, ...]
    fixes: tuple[str, ...]
    first_seen: str
    last_seen: str
    closed: str


@frozen
class Nights:
    """The content of the page."""

    rows: tuple[NightRow, ...]
    open: tuple[BreakRow, ...]
    closed: tuple[BreakRow, ...]


def write_page(store: Store, private: Private) -> Path:
    """Write `nights/index.html` in the results folder; returns its path. Raises `NoSpace`."""
    nights = NightArchive(store).all()
    page = Page("nights", redacted(nights_of(nights, store.root), private))
    return page.write(store, f"{FOLDER}/index", "html")[0]


def nights_of(nights: tuple[Night, ...], results: Path) -> Nights:
    """Make rows for nights, the newest first, and for breaks. Links only to files that exist in the results folder."""
    rows = []
    for number, night in enumerate(nights):
        past = Past.of(nights[:number], night.matrix)
        rows.append(_night_row(night, past, results))
    breaks = Past.of(nights, "").breaks.values()
    known_rows = [(known, _break_row(known, nights, results)) for known in breaks]
    return Nights(
        rows=tuple(reversed(rows)),
        open=tuple(row for known, row in known_rows if known.is_open),
        closed=tuple(row for known, row in known_rows if not known.is_open),
    )


def _night_row(night: Night, past: Past, results: Path) -> NightRow:
    counts = Counter(cell.standing for cell in night.cells)
    page = f"matrices/{night.matrix}.html"
    return NightRow(
        matrix=night.matrix,
        page=f"../{page}" if (results / page).is_file() else "",
        day=night.start[:16].replace("T", " "),
        state={NOTHING_NEW: "good", SOMETHING_BROKE: "bad", NOT_JUDGED: "skip"}[exit_code(night, past)],
        counts=", ".join(f"{counts[standing]} {standing.value}" for standing in Standing if counts[standing]),
        news=tuple(news_of(night, past).items()),
        quiet="nothing changed" if past.nights else "the first night: nothing to compare with",
        spent=f"{night.ran} runs, {night.wall_s / 60:.1f} min" if night.ended else "stopped early",
    )


def _break_row(known: Break, nights: tuple[Night, ...], results: Path) -> BreakRow:
    seen = [night.start for night in nights if any(cell.broken_by == known.id for cell in night.cells)]
    report = report_of(known)
    return BreakRow(
        title=known.title,
        report=f"../{report}" if (results / report).is_file() else "",
        sentence=known.sentence,
        cells=known.cells,
        fixes=tuple(f"{fix.by}: {fix.cell}, {fix.night[:10]}" for fix in known.fixes),
        first_seen=known.first_seen[:10],
        last_seen=max(seen, default=known.last_seen)[:10],
        closed=known.closed[:10],
    )
