"""A running bisection: a picture of the range that fills, what is running now, and how long it will take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.investigation import Level, Watcher
from harness.investigation.bisect import Progress
from harness.model import Judgement, Observation, Signature, Verdict
from harness.search import PositionState, Trial

if TYPE_CHECKING:
    from types import TracebackType

STYLE = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.SKIP: "yellow"}
_STATE_STYLE = {
    PositionState.GOOD: "bold green",
    PositionState.BAD: "bold red",
    PositionState.SKIP: "yellow",
    PositionState.UNTRIED: "default",
    PositionState.EXCLUDED: "dim",
}
_UNKNOWN_RUN_S = 15.0  # only until the first run has been timed


class QuietView(Watcher):
    """Shows nothing (`--json`)."""

    def preparing(self, candidate: Trial) -> None:
        """Nothing to show."""

    def running(self, candidate: Trial) -> None:
        """Nothing to show."""

    def told(self, candidate: Trial, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
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
        self._clock = _Clock()
        self._progress: Progress | None = None

    def begin(self, progress: Progress) -> None:
        """Print what is going to be searched."""
        self._progress = progress
        for line in heading(progress):
            self._print(line)

    def captured(self, signature: Signature) -> None:
        """Print how the bug will be recognised."""
        self._print(f"signature, taken from the bad end: {signature}")

    def preparing(self, candidate: Trial) -> None:
        """Print which release is being installed."""
        self._print(f"{self._name(candidate)}: resolving and installing")

    def running(self, candidate: Trial) -> None:
        """Print which release is running."""
        self._clock.started(candidate)
        self._print(f"{self._name(candidate)}: running")

    def told(self, candidate: Trial, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict, the picture and what is left."""
        self._clock.ended(candidate, cached=cached)
        seconds = "known already" if cached else f"{observation.duration_s:.1f} s"
        self._print(f"{self._name(candidate)}: {judgement.verdict.value} ({judgement.reason}) [{seconds}]")
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

    def _name(self, trial: Trial) -> str:
        return name_of(self._progress, trial) if self._progress else str(trial.position)


class LiveView(Watcher):
    """The same, drawn in place on a terminal. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._clock = _Clock()
        self._progress: Progress | None = None
        self._busy: dict[Trial, str] = {}
        self._level = self._doing = self._left = ""
        self._since = 0.0
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, progress: Progress) -> None:
        """Print what is going to be searched, and start the picture."""
        self._progress = progress
        for line in heading(progress):
            self.console.print(Text(line, style="dim"))

    def captured(self, signature: Signature) -> None:
        """Print how the bug will be recognised."""
        self.console.print(Text.assemble(("signature, taken from the bad end: ", "dim"), str(signature)))

    def preparing(self, candidate: Trial) -> None:
        """Show which release is being installed."""
        self._busy[candidate] = "resolving and installing"

    def running(self, candidate: Trial) -> None:
        """Show which release is running."""
        self._clock.started(candidate)
        self._busy[candidate] = "running"

    def told(self, candidate: Trial, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Print a verdict above the picture."""
        self._clock.ended(candidate, cached=cached)
        self._busy.pop(candidate, None)
        name = name_of(self._progress, candidate) if self._progress else str(candidate.position)
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
        left = self._progress.search.remaining()
        return Group(picture(self._progress), rows, Text(self._clock.left(left) if left else "", style="dim"))


class _Clock:
    """How long runs have taken, and what that means for those left."""

    def __init__(self) -> None:
        self._begun: dict[Trial, float] = {}
        self._taken: list[float] = []
        self._last = time.monotonic()

    def started(self, trial: Trial) -> None:
        self._begun[trial] = time.monotonic()

    def since(self, trial: Trial) -> str:
        return f"{time.monotonic() - self._begun[trial]:.0f} s" if trial in self._begun else ""

    def ended(self, trial: Trial, *, cached: bool) -> None:
        now = time.monotonic()
        if not cached:
            self._taken.append(now - self._last)  # with what was installed before it
        self._last = now
        self._begun.pop(trial, None)

    def left(self, runs: int) -> str:
        mean = sum(self._taken) / len(self._taken) if self._taken else _UNKNOWN_RUN_S
        about = "about " if self._taken else "perhaps "
        return f"at most {runs} {'probe' if runs == 1 else 'probes'} left, {about}{duration(runs * mean)}"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def heading(progress: Progress) -> list[str]:
    """The first lines: what is searched, where, and what was chosen for the user."""
    plan = progress.plan
    first, last = plan.releases[0].version, plan.releases[-1].version
    what = "release that fixed" if plan.question.find_fix else "release that broke"
    lines = [
        f"looking for the {what} {plan.repro.name}: {plan.subject} {first} to {last}, {len(plan.releases)} releases, "
        f"Python {plan.interpreter.version}, {plan.device.value}"
    ]
    lines += [f"  {choice}" for choice in plan.choices]
    if progress.disk:
        lines.append(f"  disk, for the first environment: {progress.disk} (--max-disk limits the harness's own cache)")
    if plan.repro.signature is not None:
        lines.append(f"  the bug is recognised by: {plan.repro.signature}")
    if plan.left_out:
        by_reason: dict[str, list[str]] = {}
        for row in plan.left_out:
            by_reason.setdefault(row.reason, []).append(row.release)
        for reason, releases in by_reason.items():
            few = ", ".join(releases[:4]) + (f" and {len(releases) - 4} more" if len(releases) > 4 else "")
            lines.append(f"  left out: {few} ({reason})")
    return lines


def picture(progress: Progress) -> Text:
    """The range as one letter for each release, the oldest first; what can't matter at the far ends is dropped."""
    states = progress.search.states
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    text = Text("[")
    for i in range(shown[0], shown[-1] + 1) if shown else ():
        text.append(states[i].symbol, _STATE_STYLE[states[i]])
    return text.append("]")


def name_of(progress: Progress, trial: Trial) -> str:
    """A release's version, and which repetition of it."""
    version = str(progress.plan.releases[trial.position].version)
    return version if trial.attempt == 0 else f"{version} (run {trial.attempt + 1})"
