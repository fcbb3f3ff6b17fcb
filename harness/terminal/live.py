"""Shows a running search: drawn in place on a terminal, one line for each probe in logs and pipes."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.events import (
    Asked,
    Dropped,
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
from harness.model import Verdict
from harness.model.text import counted, one_line
from harness.search import PositionState
from harness.terminal.console import STYLE, Console, duration, line_width, print_line, print_text, short_reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence
    from types import TracebackType

    from harness.events import Reporter

_REDRAW_S = 0.125
_UNKNOWN_RUN_S = 15.0  # the estimate before the first run has ended
_SHOWN_OF_LOOKING_UP = 5
_LABEL = 10  # columns, enough for most releases
_WORD = max(len(verdict.word) for verdict in Verdict)
_REASON = 24  # the minimum for a reason
_STATE_STYLE = {
    PositionState.GOOD: "bold green",
    PositionState.BAD: "bold red",
    PositionState.SKIP: "yellow",
    PositionState.UNTRIED: "default",
    PositionState.EXCLUDED: "dim",
}


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


class LiveView:
    """Draws in place as soon as a search begins. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = Clock()
        self._pace = Pace()
        self._answered = Answered()
        self._asked: set[str] = set()
        self._busy: dict[str, str] = {}
        self._progress = Progress()
        self._looking_up = ""
        self._live = Live(console=console, get_renderable=self._render, auto_refresh=False, transient=True)
        self._spinner = Spinner("dots")
        self._ended = threading.Event()
        self._drawing = threading.Thread(target=self._draw, name="live view", daemon=True)

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._drawing.is_alive():
            self._drawing.join()
        with self.console.writing:
            self._live.stop()

    def report(self, event: Event) -> None:
        """Print a verdict above the picture, or update the picture."""
        match event:
            case Note(sentence) | Warned(sentence):
                print_text(self.console, f"  {sentence}", "dim")
            case SearchBegan():
                self._begin(event.progress)
                for line in (event.headline, *(f"  {detail}" for detail in event.details)):
                    print_text(self.console, line, "dim")
            case LookedUp(done, count):
                self._looking_up = looking_up(event, self._pace) if done < count else ""
            case SignatureCaptured(signature, source):
                print_line(
                    self.console, Text.assemble((f"signature from {source}: ", "dim"), short_reason(str(signature)))
                )
            case LevelBegan(level, sentence):
                self._begin(Progress())
                print_text(self.console, Text.assemble((f"{level.value}: ", "bold"), sentence))
            case Asked(label):
                self._end_steps()
                self._asked.add(label)
                self._busy[label] = "resolving and installing"
            case Started(label):
                self._clock.started(label)
                self._busy[label] = "running"
            case Dropped(label):
                self._end(label)
            case Judged():
                self._judged(event)

    def _begin(self, progress: Progress) -> None:
        self._busy.clear()
        self._asked.clear()
        self._progress = progress
        if not self._live.is_started:
            with self.console.writing:
                self._live.start()
            self._drawing.start()

    def _judged(self, event: Judged) -> None:
        self._clock.ended(event.label, cached=event.cached)
        if event.label not in self._busy:
            self._end_steps()
        self._end(event.label)
        if not event.is_proof:
            self._progress = event.progress
        print_line(self.console, probe_line(self.console, event, self._answered.by(event)))

    def _end(self, label: str) -> None:
        self._busy.pop(label, None)
        self._asked.discard(label)

    def _end_steps(self) -> None:
        """End what was started without being asked for: preparing a process, tracing both sides."""
        for label in set(self._busy) - self._asked:
            del self._busy[label]

    def _draw(self) -> None:
        while not self._ended.wait(_REDRAW_S):
            with self.console.writing:
                self._live.refresh()

    def _render(self) -> Group:
        if self._looking_up:
            return Group(picture(self._progress.states), Text(self._looking_up, style="dim"))
        rows = Table.grid(padding=(0, 1))
        for label, doing in list(self._busy.items()):
            since = self._clock.since(label)
            rows.add_row(
                self._spinner,
                Text(label, style="bold", no_wrap=True, overflow="ellipsis"),
                Text(f"{doing} {since}", style="dim"),
            )
        left = Text(what_is_left(self._progress, self._clock), style="dim")
        return Group(picture(self._progress.states), rows, left) if self._progress.states else Group(rows, left)


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
                print_text(self.console, f"  {sentence}")
            case SearchBegan():
                print_text(self.console, event.headline)
                for detail in event.details:
                    print_text(self.console, f"  {detail}")
            case LookedUp(done, count):
                line = looking_up(event, self._pace)
                if done % max(count // _SHOWN_OF_LOOKING_UP, 1) == 0 and done < count:
                    print_text(self.console, line)
            case SignatureCaptured(signature, source):
                print_line(self.console, f"signature from {source}: {short_reason(str(signature))}")
            case LevelBegan(level, sentence):
                print_text(self.console, f"{level.value}: {sentence}")
            case Started(label):
                self._clock.started(label)
            case Judged():
                self._judged(event)

    def _judged(self, event: Judged) -> None:
        self._clock.ended(event.label, cached=event.cached)
        left = "proof" if event.is_proof else what_is_left(event.progress, self._clock)
        print_line(self.console, probe_line(self.console, event, self._answered.by(event), left))


class WarningsOnly:
    """Prints only warnings, for `--json`."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def report(self, event: Event) -> None:
        """Print a warning."""
        if isinstance(event, Warned):
            print_text(self._console, event.sentence)


def picture(states: Sequence[PositionState]) -> Text:
    """The range as one letter for each release, the oldest first, without excluded releases at either end."""
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    text = Text("[")
    for state in states[shown[0] : shown[-1] + 1] if shown else ():
        text.append(state.symbol, _STATE_STYLE[state])
    return text.append("]")


def probe_line(console: Console, event: Judged, by: str, left: str = "") -> Text:
    """One probe on one line: label, verdict, reason, seconds or the source of the answer (`by`), and `left`."""
    tail = f"  [{by}; {left}]" if left else f"  [{by}]"
    room = line_width(console) - len(tail) - _WORD - 4
    label = one_line(event.label, max(room - _REASON, _LABEL))
    judgement = event.judgement
    style = STYLE[Verdict.SKIP if judgement.differs else judgement.verdict]
    return Text.assemble(
        (f"{label:<{_LABEL}}  ", "bold"),
        (f"{judgement.word:<{_WORD}}", f"bold {style}"),
        f"  {short_reason(event.judgement.reason, max(room - max(len(label), _LABEL), _REASON))}",
        (tail, "dim"),
    )


def what_is_left(progress: Progress, clock: Clock) -> str:
    """What is left, as text: candidates (search over sets) or runs and time, and the groups without an answer."""
    parts = []
    if progress.candidates:
        parts.append(f"{counted(progress.candidates, 'candidate')}, {progress.tried} tried")
    elif progress.left:
        at_most = "at most " if progress.unit == "probe" else ""
        parts.append(f"{at_most}{counted(progress.left, progress.unit)} left, {clock.estimate(progress.left)}")
    if progress.groups > 1:
        parts.append(f"{progress.groups} groups of tests open")
    return ", ".join(parts)


def looking_up(event: LookedUp, pace: Pace) -> str:
    """The progress of resolving releases again, as text."""
    return f"resolving releases that were seen before again: {pace.left(event.done, event.count)}"


class Answered:
    """Tracks what answered each candidate: a run, the store, or another candidate with the same lock."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def by(self, event: Judged) -> str:
        """The seconds of a run, else what answered instead."""
        observation = event.observation
        first = self._first.setdefault(observation.key, event.label)
        if not event.cached:
            return f"{observation.duration_s:.1f} s" if observation.outcome.ran else "not started"
        return f"same lock as {first}" if first != event.label else "known already"


class Clock:
    """Times runs, each identified by its candidate."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, float] = {}
        self._taken: list[float] = []
        self._last = time.monotonic()

    def started(self, candidate: Hashable) -> None:
        """Note that a run starts."""
        self._begun[candidate] = time.monotonic()

    def since(self, candidate: Hashable) -> str:
        """How long a candidate has been running, as text; "" if it is not running."""
        return f"{time.monotonic() - self._begun[candidate]:.0f} s" if candidate in self._begun else ""

    def ended(self, candidate: Hashable, *, cached: bool) -> None:
        """Note that a run ended, or that the store had its answer (`cached`)."""
        now = time.monotonic()
        if not cached:
            self._taken.append(now - self._last)  # including its installation
        self._last = now
        self._begun.pop(candidate, None)

    def estimate(self, runs: int) -> str:
        """How long this many runs will take, from the mean time between the ends of runs so far."""
        mean = sum(self._taken) / len(self._taken) if self._taken else _UNKNOWN_RUN_S
        return f"{'about' if self._taken else 'perhaps'} {duration(runs * mean)}"


class Pace:
    """Times a sequence of equal steps."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def left(self, done: int, count: int) -> str:
        """The progress and the remaining time as text; without a time until the first step is done."""
        if done == 0:
            self._begun = time.monotonic()
            return f"0 of {count}"
        each = (time.monotonic() - self._begun) / done
        return f"{done} of {count}, about {duration((count - done) * each)} left"
