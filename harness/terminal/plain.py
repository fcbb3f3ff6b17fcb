"""Prints a running search as lines, one per probe, for logs and pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.events import (
    Event,
    Judged,
    LevelBegan,
    LookedUp,
    Note,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
)
from harness.terminal.clock import Clock, Pace
from harness.terminal.console import print_line
from harness.terminal.picture import Answered, looking_up, probe_line, short_reason, what_is_left

if TYPE_CHECKING:
    from harness.terminal.console import Console

_SHOWN_OF_LOOKING_UP = 5


class WarningsOnly:
    """Prints only warnings, for `--json`."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def report(self, event: Event) -> None:
        """Print a warning."""
        if isinstance(event, Warned):
            self._console.print(Text(event.sentence), soft_wrap=True)


class PlainView:
    """Prints a line for each finished probe."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._answered = Answered()

    def report(self, event: Event) -> None:
        """Print an event."""
        match event:
            case Note(sentence) | Warned(sentence):
                self._print(f"  {sentence}")
            case SearchBegan():
                self._print(event.headline)
                for detail in event.details:
                    self._print(f"  {detail}")
            case LookedUp(done, count):
                line = looking_up(event, self._pace)
                if done % max(count // _SHOWN_OF_LOOKING_UP, 1) == 0 and done < count:
                    self._print(line)
            case SignatureCaptured(signature, source):
                print_line(self.console, f"signature from {source}: {short_reason(str(signature))}")
            case LevelBegan(level, sentence):
                self._print(f"{level.value}: {sentence}")
            case Started(label):
                self._clock.started(label)
            case Judged():
                self._judged(event)

    def _judged(self, event: Judged) -> None:
        self._clock.ended(event.label, cached=event.cached)
        left = "proof" if event.is_proof else what_is_left(event.progress, self._clock)
        print_line(self.console, probe_line(self.console, event, self._answered.by(event), left))

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)
