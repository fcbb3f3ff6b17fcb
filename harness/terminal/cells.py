"""Running cells of a matrix: each verdict with its reason, which cells run now, how many are left and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.matrix.running import CellWatcher
from harness.terminal.clock import Clock
from harness.terminal.running import STYLE
from harness.terminal.scene import STATE_STYLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rich.console import Console

    from harness.matrix import Cell
    from harness.model import Judgement, Observation
    from harness.search import Grid


class QuietCells(CellWatcher):
    """Shows nothing (`--json`)."""

    def preparing(self, candidate: int) -> None:
        """Nothing to show."""

    def running(self, candidate: int) -> None:
        """Nothing to show."""

    def told(self, candidate: int, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Nothing to show."""


class _Told(CellWatcher):
    """What both views know: the cells, the search, the time, and which cell had an observation first."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._cells: Sequence[Cell] = ()
        self._search: Grid | None = None
        self._first: dict[str, str] = {}

    def begin(self, cells: Sequence[Cell], search: Grid) -> None:
        """Take note of what is going to be run."""
        self._cells, self._search = cells, search

    def _name(self, candidate: int) -> str:
        return self._cells[candidate].name

    def _whence(self, candidate: int, observation: Observation, *, cached: bool) -> str:
        """Seconds of a run, else what answered instead."""
        first = self._first.setdefault(observation.key, self._name(candidate))
        if not cached:
            return f"{observation.duration_s:.1f} s" if observation.outcome.ran else "not started"
        return f"same lock as {first}" if first != self._name(candidate) else "known already"

    def _left(self) -> str:
        left = self._search.remaining() if self._search is not None else 0
        return f"{left} {'cell' if left == 1 else 'cells'} left, {self._clock.estimate(left)}" if left else ""


class PlainCells(_Told):
    """One line for each thing that happens, for logs and pipes."""

    def begin(self, cells: Sequence[Cell], search: Grid) -> None:
        """Print how many cells there are."""
        super().begin(cells, search)
        self._print(f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'} to judge")

    def preparing(self, candidate: int) -> None:
        """Print which cell is being installed."""
        self._print(f"{self._name(candidate)}: resolving and installing")

    def running(self, candidate: int) -> None:
        """Print which cell is running."""
        self._clock.started(candidate)
        self._print(f"{self._name(candidate)}: running")

    def told(self, candidate: int, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict, and what is left."""
        self._clock.ended(candidate, cached=cached)
        whence = self._whence(candidate, observation, cached=cached)
        self._print(f"{self._name(candidate)}: {judgement.verdict.value} ({judgement.reason}) [{whence}]")
        if left := self._left():
            self._print(f"  {left}")

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)


class LiveCells(_Told):
    """The same, drawn in place on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._busy: dict[int, str] = {}
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveCells:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def preparing(self, candidate: int) -> None:
        """Show which cell is being installed."""
        self._busy[candidate] = "resolving and installing"

    def running(self, candidate: int) -> None:
        """Show which cell is running."""
        self._clock.started(candidate)
        self._busy[candidate] = "running"

    def told(self, candidate: int, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict above what runs."""
        self._clock.ended(candidate, cached=cached)
        self._busy.pop(candidate, None)
        self.console.print(
            Text.assemble(
                (f"{judgement.verdict.value:>5} ", f"bold {STYLE[judgement.verdict]}"),
                (f"{self._name(candidate)} ", "bold"),
                (self._whence(candidate, observation, cached=cached), "dim"),
                f"  {judgement.reason}",
            ),
            overflow="ellipsis",
            no_wrap=True,
        )

    def _render(self) -> Group | Text:
        if self._search is None:
            return Text("")
        picture = Text("[")
        for state in self._search.states:
            picture.append(state.symbol, STATE_STYLE[state])
        rows = Table.grid(padding=(0, 1))
        for candidate, doing in list(self._busy.items()):
            since = self._clock.since(candidate)
            rows.add_row(
                Spinner("dots"), Text(self._name(candidate), style="bold"), Text(f"{doing} {since}", style="dim")
            )
        return Group(picture.append("]"), rows, Text(self._left(), style="dim"))
