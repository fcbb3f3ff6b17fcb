"""A running search as lines, one for each thing that happens, for logs and pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.events import (
    Asked,
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
from harness.terminal.picture import Answered, looking_up, picture, what_is_left

if TYPE_CHECKING:
    from harness.terminal.console import Console

_SHOWN_OF_LOOKING_UP = 5


class WarningsOnly:
    """Shows nothing but warnings (`--json`)."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def report(self, event: Event) -> None:
        """Print a warning."""
        if isinstance(event, Warned):
            self._console.print(Text(event.sentence), soft_wrap=True)


class PlainView:
    """Prints lines. Runs at the levels of a culprit are many and short: only their verdicts are worth a line."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._answered = Answered()
        self._in_level = False

    def report(self, event: Event) -> None:
        """Print what happened."""
        match event:
            case Note(sentence) | Warned(sentence):
                self._print(f"  {sentence}")
            case SearchBegan():
                self._in_level = False
                self._print(event.headline)
                for detail in event.details:
                    self._print(f"  {detail}")
            case LookedUp(done, count):
                line = looking_up(event, self._pace)
                if done % max(count // _SHOWN_OF_LOOKING_UP, 1) == 0 and done < count:
                    self._print(line)
            case SignatureCaptured(signature, source):
                self._print(f"signature, taken from {source}: {signature}")
            case LevelBegan(level, sentence):
                self._in_level = True
                self._print(f"{level.value}: {sentence}")
            case Asked(label) if not self._in_level:
                self._print(f"{label}: resolving and installing")
            case Started(label) if not self._in_level:
                self._clock.started(label)
                self._print(f"{label}: running")
            case Judged():
                self._judged(event)

    def _judged(self, event: Judged) -> None:
        self._clock.ended(event.label, cached=event.cached)
        verdict, reason, by = event.judgement.verdict.value, event.judgement.reason, self._answered.by(event)
        left = "proof" if event.is_proof else what_is_left(event.progress, self._clock)
        if self._in_level:
            self._print(f"  {verdict:>4}  {event.label} ({reason}) [{by}; {left}]")
            return
        self._print(f"{event.label}: {verdict} ({reason}) [{by}]")
        if left:
            shown = f"{picture(event.progress.states).plain}  " if event.progress.unit == "probe" else ""
            self._print(f"  {shown}{left}")

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)
