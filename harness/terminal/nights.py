"""Prints a night while it runs, one line per run, and its news at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.events import Event, Judged, LevelBegan, Note, Progress, SearchBegan, Started, Warned
from harness.model.text import counted
from harness.nightly.news import news_of, one_line
from harness.terminal.console import duration, print_line, print_text
from harness.terminal.live import PlainView, probe_line

if TYPE_CHECKING:
    from harness.nightly.record import Night, Past
    from harness.terminal.console import Console

_STYLE = {
    "newly broken": "bold red",
    "broken again": "bold red",
    "turned bad, cause still to be found": "bold red",
    "fixed": "bold green",
}


class NightView:
    """Prints a line for each run, but not for answers from the store."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._lines = PlainView(console)
        self._in_cells = False

    def report(self, event: Event) -> None:
        """Print a line, or nothing."""
        match event:
            case Note(sentence) | Warned(sentence):
                print_text(self.console, sentence)
            case SearchBegan(progress=Progress(unit="cell")):
                self._in_cells = True
            case Started(label) if self._in_cells:  # so that a truncated log shows what ran last
                print_line(self.console, f"{label}: running")
            case Judged() if self._in_cells:
                if not event.cached:
                    self._judged(event)
            case SearchBegan() | LevelBegan():
                self._in_cells = False
                self._lines.report(event)
            case _:
                self._lines.report(event)

    def _judged(self, event: Judged) -> None:
        took = f"{event.observation.duration_s:.1f} s" if event.observation.outcome.ran else "not run"
        left = counted(event.progress.left, "cell")
        print_line(self.console, probe_line(self.console, event, took, f"{left} left"))


def estimate(cells: int, seconds: float | None, gpu_seconds: float | None) -> str:
    """The number of cells, and how long they take if all of them run, from the times of earlier nights."""
    about = counted(cells, "cell")
    if seconds is None:
        return f"{about}; how long they take is not known yet"
    on_gpu = f", {duration(gpu_seconds)} of it on a GPU" if gpu_seconds else ""
    return f"{about}, about {duration(seconds)} if all of them have to be run{on_gpu}"


def print_night(console: Console, night: Night, past: Past, reports: dict[str, str]) -> None:
    """Print a summary line, then each heading with its sentences; `reports` maps titles to paths of reports."""
    print_text(console, one_line(night, past))
    for heading, lines in news_of(night, past).items():
        console.print(Text(f"{heading}:", style=_STYLE.get(heading, "bold yellow")))
        for line in lines:
            print_text(console, f"  {line}")
    for title, path in reports.items():
        print_text(console, f"  report: {path} ({title})")
