"""Shows a running search: drawn in place on a terminal, one line for each probe in logs and pipes."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.atomic import write_whole
from harness.environment.workspace import Workspace
from harness.errors import NoNetwork
from harness.events import (
    Dropped,
    Event,
    Judged,
    LevelBegan,
    Note,
    Preparing,
    Progress,
    Reporter,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
    repetition_of,
)
from harness.model import Signature, Verdict
from harness.model.text import counted, one_line, short_reason, size_in_words
from harness.terminal.console import STYLE, Console, duration, line_width, picture, print_line, print_text
from harness.terminal.stream import JsonLines, is_for_agent

_REDRAW_S = 0.125
_DAY_S = 24 * 3600.0
_LABEL = 10  # columns, enough for most releases
_WORD = max(len(verdict.word) for verdict in Verdict)
_KNOWN = "known already"
_REASON = 16  # the minimum for a reason; a shorter one is left out
_REASON_FIRST = 32  # what a reason needs before there is room for what is left
_SIGNATURE = 160
_INSTALLING = "resolving and installing"
_SHORT = 12  # the longest name of another candidate in brackets


@contextlib.contextmanager
def reporting(console: Console, *, quiet: bool, lines: JsonLines | None = None) -> Iterator[Reporter]:
    """A reporter for a console, or `lines`; a live picture disappears when the context ends."""
    if lines is not None:
        yield lines
    elif quiet:
        yield WarningsOnly(console)
    elif console.is_terminal and not is_for_agent():
        with LiveView(console) as live:
            yield live
    else:
        with PlainView(console, counting=True) as plain:
            yield plain


class PlainView:
    """Prints a line for each finished probe; with `counting`, repetitions in a row are one line.

    Use it as a context manager; `now` is its clock, in seconds. The headline comes with the first step that follows it,
    so that nothing stands before the error if the package index can't be asked.
    """

    _style = ""

    def __init__(self, console: Console, *, counting: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._is_counting = counting
        self._head: tuple[str, ...] = ()
        self._clock = Clock(now)
        self._answered = Answered()
        self._repeats = Repeats()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, NoNetwork):
            self._head = ()
        self._print_head()
        self._end()

    def _print_head(self) -> None:
        head, self._head = self._head, ()
        for line in head:
            self._say(line)

    def _end(self) -> None:
        """Print the repetitions that were held back."""
        self._repeats.print(self.console)

    def report(self, event: Event) -> None:
        """Print an event."""
        if not isinstance(event, Preparing):
            self._print_head()
        match event:
            case Note(sentence):
                self._say(f"  {sentence}")
            case Warned(sentence) if is_due(event):
                self._say(f"  {sentence}")
            case SearchBegan(headline, details):
                self._begin(event.progress)
                self._repeats = Repeats()
                self._head = (headline, *(f"  {detail}" for detail in details))
            case SignatureCaptured(signature, source):
                self._say(captured(signature, source), hang=2)
            case LevelBegan(level, sentence):
                self._begin(Progress())
                print_text(self.console, Text.assemble((f"{level.value}: ", "bold"), sentence))
            case Started(label):
                self._clock.started(label)
            case Judged():
                seconds = self._clock.ended(event.label)
                by = self._answered.by(event, seconds)
                self._clock.answered(ran=not event.cached, is_known=by == _KNOWN)
                left = "proof" if event.is_proof else what_is_left(event.progress, self._clock)
                self._judged(event, by, left)

    def _say(self, line: str, hang: int = 0) -> None:
        print_text(self.console, line, self._style, hang=hang)

    def _begin(self, progress: Progress) -> None:  # noqa: ARG002 - a view that draws shows it
        self._clock.begin()
        self._end()

    def _judged(self, event: Judged, by: str, left: str) -> None:
        if (not self._is_counting or not self._repeats.took(event)) and self._answered.is_news(event):
            self._end()
            print_line(self.console, probe_line(self.console, event, by, left))


class LiveView(PlainView):
    """Draws in place as soon as a search begins."""

    _style = "dim"

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._left = ""
        self._requested: set[str] = set()
        self._busy: dict[str, str] = {}
        self._progress = Progress()
        self._live = Live(console=console, get_renderable=self._render, auto_refresh=False, transient=True)
        self._spinner = Spinner("dots")
        self._arrived = Arrived()
        self._ended = threading.Event()
        self._drawing = threading.Thread(target=self._draw, name="live view", daemon=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        if self._drawing.is_alive():
            self._drawing.join()
        with self.console.writing:
            self._live.stop()
        super().__exit__(kind, error, trace)

    def report(self, event: Event) -> None:
        """Print a verdict above the picture, or update the picture."""
        super().report(event)
        match event:
            case Preparing(label):
                self._end_steps()
                self._requested.add(label)
                self._busy[label] = _INSTALLING
            case Started(label):
                self._busy[label] = "running"
            case Dropped(label):
                self._drop(label)

    def _begin(self, progress: Progress) -> None:
        super()._begin(progress)
        self._busy.clear()
        self._requested.clear()
        self._progress = progress
        self._left = what_is_left(progress, self._clock)
        if not self._live.is_started:
            with self.console.writing:
                self._live.start()
            self._drawing.start()

    def _judged(self, event: Judged, by: str, left: str) -> None:
        if event.label not in self._busy:
            self._end_steps()
        self._drop(event.label)
        if not event.is_proof:
            self._progress, self._left = event.progress, left
        if not self._repeats.took(event) and self._answered.is_news(event):
            self._end()
            print_text(self.console, probe_line(self.console, event, by), hang=_WORD + 2)

    def _drop(self, label: str) -> None:
        self._busy.pop(label, None)
        self._requested.discard(label)

    def _end_steps(self) -> None:
        """End what was started without a request: preparing a process, tracing both sides."""
        for label in set(self._busy) - self._requested:
            del self._busy[label]

    def _draw(self) -> None:
        while not self._ended.wait(_REDRAW_S):
            with self.console.writing:
                self._live.refresh()

    def _render(self) -> Group:
        rows = Table.grid(padding=(0, 1))
        for label, step in list(self._busy.items()):
            doing = f"{step}{self._arrived.so_far()}" if step == _INSTALLING else step
            since = self._clock.since(label)
            rows.add_row(
                self._spinner,
                Text(label, style="bold", no_wrap=True, overflow="ellipsis"),
                Text(f"{doing} {since}", style="dim"),
            )
        head = (Text(line, style=self._style) for line in self._head)
        parts: list[Text | Table] = [*head, *self._repeats.lines(), rows, Text(self._left, style="dim")]
        states = self._progress.states
        return Group(picture(states, line_width(self.console)), *parts) if states else Group(*parts)


class WarningsOnly:
    """Prints only warnings, for `--json`."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def report(self, event: Event) -> None:
        """Print a warning."""
        if isinstance(event, Warned) and is_due(event):
            print_text(self._console, event.sentence)


def is_due(warning: Warned) -> bool:
    """Whether to show a warning: a daily one only if it was not in the last 24 hours."""
    if not warning.is_daily:
        return True
    path = Workspace.default().root / "warned.txt"
    with contextlib.suppress(OSError):
        if path.read_text(encoding="utf-8") == warning.sentence and time.time() - path.stat().st_mtime < _DAY_S:
            return False
    with contextlib.suppress(OSError):
        write_whole(path, warning.sentence)
    return True


def probe_line(console: Console, event: Judged, by: str, left: str = "") -> Text:
    """One probe as one line if it fits: verdict, label, reason, seconds or the source of the answer (`by`), and `left`.

    Without room for the start of the reason `left` is left out; then the reason is cut. That a run ended normally is no
    news.
    """
    judgement, tail = event.judgement, f"  [{by}; {left}]" if left else f"  [{by}]"
    is_news = judgement.word != Verdict.GOOD.word or judgement.has_number
    wanted = min(len(short_reason(judgement.reason)), _REASON_FIRST) if is_news and not event.is_proof else 0
    if line_width(console) - len(tail) - _WORD - 4 - max(len(event.label), _LABEL) < wanted:
        tail = f"  [{by}]"
    label = one_line(event.label, line_width(console) - len(tail) - _WORD - 2)
    room = line_width(console) - len(tail) - _WORD - 4 - max(len(label), _LABEL)
    reason = short_reason(judgement.reason, max(room, 1)) if room >= _REASON and is_news else ""
    style = STYLE[Verdict.SKIP if judgement.word == "differs" else judgement.verdict]
    return Text.assemble(
        (f"{judgement.word:<{_WORD}}", f"bold {style}"),
        (f"  {label:<{_LABEL}}" if reason else f"  {label}", "bold"),
        f"  {reason}" if reason else "",
        (tail, "dim"),
    )


def captured(signature: Signature, source: str) -> str:
    """How the bug is recognised, as a line."""
    return f"the bug, from {source}: {short_reason(str(signature), _SIGNATURE)}"


class Repeats:
    """Counts the runs of each candidate, so that its repetitions are one line: "bad  1.2  3 of 3 runs"."""

    def __init__(self) -> None:
        self._runs: dict[str, Counter[Verdict]] = {}
        self._open: dict[str, None] = {}

    def took(self, event: Judged) -> bool:
        """Count a run; whether it is a repetition, which gets no line of its own."""
        if event.judgement.is_measured:
            return False
        name = None if event.is_proof else repetition_of(event.label)
        runs = self._runs.setdefault(name or event.label, Counter())
        runs[event.judgement.verdict] += 1
        if name is not None:
            self._open[name] = None
        return name is not None

    def lines(self) -> Iterator[Text]:
        """One line for each candidate that was repeated and not printed yet."""
        for name in list(self._open):
            runs = self._runs[name]
            worst = next(verdict for verdict in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP) if runs[verdict])
            yield Text.assemble(
                (f"{worst.word:<{_WORD}}", f"bold {STYLE[worst]}"),
                (f"  {name:<{_LABEL}}", "bold"),
                f"  {runs[worst]} of {counted(runs.total(), 'run')}",
            )

    def print(self, console: Console) -> None:
        """Print and forget the lines; the counts go on."""
        lines = list(self.lines())
        self._open.clear()
        for line in lines:
            print_text(console, line, hang=_WORD + 2)


def what_is_left(progress: Progress, clock: Clock) -> str:
    """What is left, as text: candidates (search over sets), or runs and time."""
    if progress.candidates:
        return f"{counted(progress.candidates, 'candidate')}, {progress.tried} tried"
    if not progress.left:
        return ""
    at_most = "at most " if progress.unit == "run" else ""
    return f"{at_most}{counted(progress.left, progress.unit)} left, {clock.estimate(progress.left)}"


class Answered:
    """Tracks what answered each candidate: a run, the store, or another candidate with the same lock."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._shown: set[tuple[str, str, str]] = set()

    def is_news(self, event: Judged) -> bool:
        """Whether nothing like it was printed: several failures ask for the same candidates, with the same verdicts."""
        key = (event.observation.key, event.label, event.judgement.word)
        is_news = event.is_proof or not event.cached or key not in self._shown
        self._shown.add(key)
        return is_news

    def by(self, event: Judged, seconds: float) -> str:
        """The seconds that a run took, else what answered instead."""
        observation = event.observation
        first = self._first.setdefault(observation.key, event.label)
        if not event.cached:
            return f"{seconds or observation.duration_s:.1f} s" if observation.outcome.ran else "not started"
        if first == event.label:
            return _KNOWN
        return f"same packages as {first}" if len(first) <= _SHORT else "same packages as before"


class Arrived:
    """Measures what uv has unpacked so far of the wheels that it downloads, at most once a second."""

    def __init__(self) -> None:
        self._folder = Workspace.default().root / "downloads"
        self._measured = -math.inf
        self._bytes = 0

    def so_far(self) -> str:
        """The size as text, beginning with a comma; "" if nothing is being downloaded."""
        if (now := time.monotonic()) - self._measured >= 1:
            self._measured, self._bytes = now, 0
            for folder, _, names in os.walk(self._folder):
                for name in names:
                    with contextlib.suppress(OSError):  # uv moves them
                        self._bytes += Path(folder, name).lstat().st_size
        return f", {size_in_words(self._bytes)} on disk so far" if self._bytes else ""


class Clock:
    """Times runs, each identified by its candidate, and estimates from those of one search how long others take."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun: dict[Hashable, float] = {}
        self._taken: list[float] = []
        self._last = now()

    def begin(self) -> None:
        """Forget how long runs took: another search may have runs of another kind."""
        self._taken.clear()
        self._last = self._now()

    def started(self, candidate: Hashable) -> None:
        """Note that a run starts."""
        self._begun[candidate] = self._now()

    def since(self, candidate: Hashable) -> str:
        """How long a candidate has been running, as text; "" if it is not running."""
        return f"{self._now() - self._begun[candidate]:.0f} s" if candidate in self._begun else ""

    def ended(self, candidate: Hashable) -> float:
        """Note that a run ended; returns its seconds, 0.0 if it did not start."""
        now = self._now()
        return now - self._begun.pop(candidate, now)

    def answered(self, *, ran: bool, is_known: bool) -> None:
        """Note an answer: a run counts as the time since the answer before, installation and lanes included.

        One that was known counts as none; one of the same packages as another says nothing about the next.
        """
        now = self._now()
        if ran or is_known:
            self._taken.append(now - self._last if ran else 0.0)
        self._last = now

    def estimate(self, runs: int) -> str:
        """How long this many runs will take, from the mean of those so far; unknown until one has run."""
        if not any(self._taken):
            return "time unknown"
        return f"about {duration(runs * sum(self._taken) / len(self._taken))}"
