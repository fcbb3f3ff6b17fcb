"""What every view of a running search shows alike: colours, the range as a picture, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.model import Verdict
from harness.model.words import counted, listed
from harness.search import PositionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from harness.events import Judged, LookedUp, Progress
    from harness.terminal.clock import Clock, Pace

_NAMED = 6  # skipped releases of one reason; more are counted

STYLE = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.SKIP: "yellow"}
_STATE_STYLE = {
    PositionState.GOOD: "bold green",
    PositionState.BAD: "bold red",
    PositionState.SKIP: "yellow",
    PositionState.UNTRIED: "default",
    PositionState.EXCLUDED: "dim",
}


def picture(states: Sequence[PositionState]) -> Text:
    """The range as one letter for each release, the oldest first; what can't matter at the far ends is dropped."""
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    text = Text("[")
    for state in states[shown[0] : shown[-1] + 1] if shown else ():
        text.append(state.symbol, _STATE_STYLE[state])
    return text.append("]")


def print_skipped(console: Console, skipped: Iterable[tuple[str, str]]) -> None:
    """The releases that were skipped, those with one reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for release, reason in skipped:
        by_reason.setdefault(reason, []).append(release)
    for reason, releases in by_reason.items():
        console.print(Text.assemble(("  skipped ", "yellow"), f"{listed(releases, _NAMED)}: {reason}"))


def what_is_left(progress: Progress, clock: Clock) -> str:
    """How many runs are left and how long they take, in words; empty where nothing is known of it."""
    if progress.candidates:
        return f"{counted(progress.candidates, 'candidate')}, {progress.tried} tried"
    if not progress.left:
        return ""
    at_most = "at most " if progress.unit == "probe" else ""
    return f"{at_most}{counted(progress.left, progress.unit)} left, {clock.estimate(progress.left)}"


def looking_up(event: LookedUp, pace: Pace) -> str:
    """What takes a while before anything runs, and how far it is."""
    return f"looking up what releases that were seen before come to now: {pace.left(event.done, event.count)}"


class Answered:
    """Who answered each candidate: a run, the store, or another candidate with the same lock."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def by(self, event: Judged) -> str:
        """Seconds of a run, else what answered instead."""
        observation = event.observation
        first = self._first.setdefault(observation.key, event.label)
        if not event.cached:
            return f"{observation.duration_s:.1f} s" if observation.outcome.ran else "not started"
        return f"same lock as {first}" if first != event.label else "known already"
