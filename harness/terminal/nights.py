"""A night as it goes on, a line for each thing that runs, and what it has to say at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field
from rich.text import Text

from harness.matrix.running import CellWatcher
from harness.nightly.telling import news_of, one_line
from harness.terminal.clock import duration
from harness.terminal.running import PlainView, QuietView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from harness.bisect.investigate import Watcher
    from harness.matrix import Cell
    from harness.model import Judgement, Observation
    from harness.nightly.record import Night, Past
    from harness.search import Grid

_STYLE = {
    "newly broken": "bold red",
    "broken again": "bold red",
    "turned bad, cause still to be found": "bold red",
    "fixed": "bold green",
}


@define
class NightView:
    """Lines about what is run; what the store answers is not worth one. `quiet` shows nothing (`--json`)."""

    console: Console
    quiet: bool = False
    cells: CellWatcher = field(init=False)
    levels: Watcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.cells = _CellLines(self)
        self.levels = QuietView() if self.quiet else PlainView(self.console)

    def say(self, sentence: str) -> None:
        """Print one line."""
        if not self.quiet:
            self.console.print(Text(sentence), soft_wrap=True)


@define
class _CellLines(CellWatcher):
    view: NightView
    _cells: Sequence[Cell] = ()
    _search: Grid | None = None

    def begin(self, cells: Sequence[Cell], search: Grid) -> None:
        self._cells, self._search = cells, search

    def preparing(self, candidate: int) -> None:
        pass

    def running(self, candidate: int) -> None:
        self.view.say(f"{self._cells[candidate].name}: running")

    def told(self, candidate: int, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        if not cached:
            left = self._search.remaining() if self._search is not None else 0
            took = f"{observation.duration_s:.1f} s" if observation.outcome.ran else "not run"
            name = self._cells[candidate].name
            self.view.say(f"{name}: {judgement.verdict.value} ({judgement.reason}) [{took}; {_cells(left)} left]")


def estimate(cells: int, seconds: float | None, gpu_seconds: float | None) -> str:
    """How many cells there are, and how long they take at most by what earlier nights measured."""
    about = _cells(cells)
    if seconds is None:
        return f"{about}; how long they take is not known yet"
    on_gpu = f", {duration(gpu_seconds)} of it on a GPU" if gpu_seconds else ""
    return f"{about}, about {duration(seconds)} if all of them have to be run{on_gpu}"


def print_night(console: Console, night: Night, past: Past, reports: dict[str, str]) -> None:
    """One line, then each heading with its sentences; `reports` maps titles to where their reports lie."""
    console.print(Text(one_line(night, past)), soft_wrap=True)
    for heading, lines in news_of(night, past).items():
        console.print(Text(f"{heading}:", style=_STYLE.get(heading, "bold yellow")))
        for line in lines:
            console.print(Text(f"  {line}"), soft_wrap=True)
    for title, path in reports.items():
        console.print(Text(f"  report: {path} ({title})"), soft_wrap=True)


def _cells(count: int) -> str:
    return f"{count} {'cell' if count == 1 else 'cells'}"
