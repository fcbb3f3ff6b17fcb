"""Prints a history: the windows, what was not run, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.asking.history import HistoryStatus, RowState
from harness.model.text import counted
from harness.model.verdict import runs_of
from harness.terminal.console import duration, print_skipped, print_text

if TYPE_CHECKING:
    from harness.asking.history import History
    from harness.terminal.console import Console

_LEGEND = "  G good, B bad, S skipped; g and b not run, since the runs around them agree; ? not run"
_STATUS_STYLE = {HistoryStatus.BROKEN: "bold red", HistoryStatus.NEVER_BROKEN: "bold green"}
_STATE_STYLE = {
    RowState.GOOD: "bold green",
    RowState.BAD: "bold red",
    RowState.SKIP: "yellow",
    RowState.BETWEEN_GOOD: "green",
    RowState.BETWEEN_BAD: "red",
}


def print_history(console: Console, history: History, results: str) -> None:
    """Print the sentence, the picture of the range, the limits of the answer, and what was skipped."""
    console.print()
    print_text(console, history.sentence, _STATUS_STYLE.get(history.status, "bold yellow"))
    console.print(Text("  ").append_text(_picture(history)))
    print_text(console, _LEGEND, "dim")
    if history.signature is not None:
        print_text(console, f"  recognised by: {history.signature}")
    for note in history.notes:
        print_text(console, f"  {note}")
    tried = [row for row in history.rows if row.state is not RowState.LEFT_OUT]
    print_skipped(console, ((row.release, row.reason if row.state is RowState.SKIP else None) for row in tried))
    runs = f"{runs_of(history.probes, history.steps)}; {counted(history.tried, 'release')} in the range"
    print_text(console, f"  {runs}; {duration(history.wall_s)} on {history.device}; records in {results}", "dim")
    if history.advice:
        print_text(console, history.advice)


def _picture(history: History) -> Text:
    rows = [row for row in history.rows if row.state is not RowState.LEFT_OUT]
    text = Text("[")
    for row in rows:
        text.append(row.state.symbol, _STATE_STYLE.get(row.state, "default"))
    return text.append(f"]  {rows[0].release} to {rows[-1].release}")
