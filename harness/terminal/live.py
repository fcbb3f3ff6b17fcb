"""Shows a running search on a terminal: the range with its verdicts, current runs, and the remaining time."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.events import (
    Asked,
    Event,
    Judged,
    LevelBegan,
    LookedUp,
    Note,
    Progress,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
)
from harness.terminal.clock import Clock, Pace
from harness.terminal.console import Console, print_line
from harness.terminal.picture import Answered, looking_up, picture, probe_line, short_reason, what_is_left
from harness.terminal.plain import PlainView, WarningsOnly

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from harness.events import Reporter


class LiveView:
    """Draws in place as soon as a search begins. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._answered = Answered()
        self._busy: dict[str, str] = {}
        self._progress = Progress()
        self._looking_up = ""
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def report(self, event: Event) -> None:
        """Print a verdict above the picture, or update the picture."""
        match event:
            case Note(sentence) | Warned(sentence):
                self.console.print(Text(f"  {sentence}", style="dim"), soft_wrap=True)
            case SearchBegan():
                self._begin(event.progress)
                for line in (event.headline, *(f"  {detail}" for detail in event.details)):
                    self.console.print(Text(line, style="dim"))
            case LookedUp(done, count):
                self._looking_up = looking_up(event, self._pace) if done < count else ""
            case SignatureCaptured(signature, source):
                print_line(
                    self.console, Text.assemble((f"signature from {source}: ", "dim"), short_reason(str(signature)))
                )
            case LevelBegan(level, sentence):
                self._begin(Progress())
                self.console.print(Text.assemble((f"{level.value}: ", "bold"), sentence))
            case Asked(label):
                self._busy[label] = "resolving and installing"
            case Started(label):
                self._clock.started(label)
                self._busy[label] = "running"
            case Judged():
                self._judged(event)

    def _begin(self, progress: Progress) -> None:
        self._busy.clear()
        self._progress = progress
        self._live.start()

    def _judged(self, event: Judged) -> None:
        self._clock.ended(event.label, cached=event.cached)
        self._busy.pop(event.label, None)
        if not event.is_proof:
            self._progress = event.progress
        print_line(self.console, probe_line(self.console, event, self._answered.by(event)))

    def _render(self) -> Group:
        if self._looking_up:
            return Group(picture(self._progress.states), Text(self._looking_up, style="dim"))
        rows = Table.grid(padding=(0, 1))
        for label, doing in list(self._busy.items()):
            since = self._clock.since(label)
            rows.add_row(
                Spinner("dots"),
                Text(label, style="bold", no_wrap=True, overflow="ellipsis"),
                Text(f"{doing} {since}", style="dim"),
            )
        left = Text(what_is_left(self._progress, self._clock), style="dim")
        return Group(picture(self._progress.states), rows, left) if self._progress.states else Group(rows, left)


@contextlib.contextmanager
def reporting(console: Console, *, quiet: bool) -> Iterator[Reporter]:
    """A reporter for a console; a live picture disappears when the context ends."""
    if quiet:
        yield WarningsOnly(console)
    elif console.is_terminal:
        with LiveView(console) as view:
            yield view
    else:
        yield PlainView(console)
