"""A running search: a picture of the range that fills, what is running now, and how long it will take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.bisect.investigate import Watcher
from harness.model import Judgement, Observation, Signature, Verdict
from harness.model.culprit import Level
from harness.terminal.clock import Clock, Pace
from harness.terminal.scene import Scene, heading, name_of, picture, source_of

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import TracebackType

_LOOKING_UP = "looking up what releases that were seen before, with other companions, come to now"

STYLE = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.SKIP: "yellow"}


class QuietView(Watcher):
    """Shows nothing (`--json`)."""

    def begin(self, progress: Scene) -> None:
        """Nothing to show."""

    def looking_up(self, done: int, count: int) -> None:
        """Nothing to show."""

    def captured(self, signature: Signature) -> None:
        """Nothing to show."""

    def preparing(self, candidate: Hashable) -> None:
        """Nothing to show."""

    def running(self, candidate: Hashable) -> None:
        """Nothing to show."""

    def told(self, candidate: Hashable, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Nothing to show."""

    def level(self, level: Level, sentence: str) -> None:
        """Nothing to show."""

    def trying(self, label: str) -> None:
        """Nothing to show."""

    def tried(self, label: str, judgement: Judgement, observation: Observation, *, cached: bool, left: str) -> None:
        """Nothing to show."""


class PlainView(Watcher):
    """One line for each thing that happens, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._progress: Scene | None = None

    def begin(self, progress: Scene) -> None:
        """Print what is going to be searched."""
        self._progress = progress
        for line in heading(progress):
            self._print(line)

    def looking_up(self, done: int, count: int) -> None:
        """Print that it takes a while before anything runs, and now and then how far it is."""
        left = self._pace.left(done, count)
        if done % max(count // 5, 1) == 0 and done < count:
            self._print(f"{_LOOKING_UP}: {left}")

    def captured(self, signature: Signature) -> None:
        """Print how the bug will be recognised."""
        self._print(f"signature, taken from {source_of(self._progress)}: {signature}")

    def preparing(self, candidate: Hashable) -> None:
        """Print which release is being installed."""
        self._print(f"{name_of(self._progress, candidate)}: resolving and installing")

    def running(self, candidate: Hashable) -> None:
        """Print which release is running."""
        self._clock.started(candidate)
        self._print(f"{name_of(self._progress, candidate)}: running")

    def told(self, candidate: Hashable, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict, the picture and what is left."""
        self._clock.ended(candidate, cached=cached)
        seconds = "known already" if cached else f"{observation.duration_s:.1f} s"
        self._print(f"{name_of(self._progress, candidate)}: {judgement.verdict.value} ({judgement.reason}) [{seconds}]")
        if self._progress is not None and (left := self._progress.search.remaining()):
            self._print(f"  {picture(self._progress).plain}  {self._clock.left(left)}")

    def level(self, level: Level, sentence: str) -> None:
        """Print what is searched now."""
        self._print(f"{level.value}: {sentence}")

    def trying(self, label: str) -> None:
        """Nothing to print: these runs are many and short."""

    def tried(self, label: str, judgement: Judgement, observation: Observation, *, cached: bool, left: str) -> None:
        """Print one verdict."""
        seconds = "known already" if cached else f"{observation.duration_s:.1f} s"
        self._print(f"  {judgement.verdict.value:>4}  {label} ({judgement.reason}) [{seconds}; {left}]")

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)


class LiveView(Watcher):
    """The same, drawn in place on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._progress: Scene | None = None
        self._busy: dict[Hashable, str] = {}
        self._level = self._doing = self._left = self._looking_up = ""
        self._since = 0.0
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, progress: Scene) -> None:
        """Print what is going to be searched, and start the picture."""
        self._progress = progress
        for line in heading(progress):
            self.console.print(Text(line, style="dim"))

    def looking_up(self, done: int, count: int) -> None:
        """Show that it takes a while before anything runs, and how far it is."""
        left = self._pace.left(done, count)
        self._looking_up = f"{_LOOKING_UP}: {left}" if done < count else ""

    def captured(self, signature: Signature) -> None:
        """Print how the bug will be recognised."""
        self.console.print(
            Text.assemble((f"signature, taken from {source_of(self._progress)}: ", "dim"), str(signature))
        )

    def preparing(self, candidate: Hashable) -> None:
        """Show which release is being installed."""
        self._busy[candidate] = "resolving and installing"

    def running(self, candidate: Hashable) -> None:
        """Show which release is running."""
        self._clock.started(candidate)
        self._busy[candidate] = "running"

    def told(self, candidate: Hashable, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict above the picture."""
        self._clock.ended(candidate, cached=cached)
        self._busy.pop(candidate, None)
        name = name_of(self._progress, candidate)
        seconds = "known already" if cached else f"{observation.duration_s:.1f} s"
        style = STYLE[judgement.verdict]
        self.console.print(
            Text.assemble(
                (f"{judgement.verdict.value:>5} ", f"bold {style}"),
                (f"{name:<12} ", "bold"),
                judgement.reason,
                (f"  {seconds}", "dim"),
            ),
            overflow="ellipsis",
            no_wrap=True,
        )

    def level(self, level: Level, sentence: str) -> None:
        """Print what is searched now, and show it instead of the picture of releases."""
        self._level = f"{level.value}: {sentence}"
        self.console.print(Text.assemble((f"{level.value}: ", "bold"), sentence))

    def trying(self, label: str) -> None:
        """Show what is running."""
        self._doing, self._since = label, time.monotonic()

    def tried(self, label: str, judgement: Judgement, observation: Observation, *, cached: bool, left: str) -> None:
        """Print one verdict above."""
        self._doing = ""
        self._left = left
        style = f"bold {STYLE[judgement.verdict]}"
        seconds = "known already" if cached else f"{observation.duration_s:.1f} s"
        line = Text.assemble(
            (f"{judgement.verdict.value:>5} ", style), label, "  ", (judgement.reason, "dim"), (f"  {seconds}", "dim")
        )
        self.console.print(line, overflow="ellipsis", no_wrap=True)

    def _render(self) -> Group | Text:
        if self._level:
            since = f"{time.monotonic() - self._since:.0f} s" if self._doing else ""
            row = Table.grid(padding=(0, 1))
            row.add_row(Spinner("dots"), Text(self._doing, style="bold"), Text(since, style="dim"))
            return Group(row, Text(self._left, style="dim"))
        if self._progress is None:
            return Text("")
        rows = Table.grid(padding=(0, 1))
        for trial, doing in list(self._busy.items()):
            since = self._clock.since(trial)
            rows.add_row(
                Spinner("dots"),
                Text(name_of(self._progress, trial), style="bold"),
                Text(f"{doing} {since}", style="dim"),
            )
        if self._looking_up:
            return Group(picture(self._progress), Text(self._looking_up, style="dim"))
        left = self._progress.search.remaining()
        return Group(picture(self._progress), rows, Text(self._clock.left(left) if left else "", style="dim"))
