"""What all views of a running search share: colours, the picture of the range, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.model import Verdict
from harness.model.text import counted, listed_in_order, one_line, without_folders
from harness.search import PositionState
from harness.terminal.console import line_width, print_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from harness.events import Judged, LookedUp, Progress
    from harness.terminal.clock import Clock, Pace

_LABEL = 10  # columns, enough for most releases
_WORD = max(len(verdict.word) for verdict in Verdict)
_REASON = 24  # the minimum for a reason
STYLE = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.SKIP: "yellow"}
_STATE_STYLE = {
    PositionState.GOOD: "bold green",
    PositionState.BAD: "bold red",
    PositionState.SKIP: "yellow",
    PositionState.UNTRIED: "default",
    PositionState.EXCLUDED: "dim",
}


def picture(states: Sequence[PositionState]) -> Text:
    """The range as one letter for each release, the oldest first, without excluded releases at either end."""
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    text = Text("[")
    for state in states[shown[0] : shown[-1] + 1] if shown else ():
        text.append(state.symbol, _STATE_STYLE[state])
    return text.append("]")


def short_reason(reason: str, width: int = 200) -> str:
    """A reason on one line, without the folders of environments."""
    return one_line(without_folders(reason), width)


def probe_line(console: Console, event: Judged, by: str, left: str = "") -> Text:
    """One probe on one line: label, verdict, reason, seconds or the source of the answer (`by`), and `left`."""
    tail = f"  [{by}; {left}]" if left else f"  [{by}]"
    room = line_width(console) - len(tail) - _WORD - 4
    label = one_line(event.label, max(room - _REASON, _LABEL))
    verdict = event.judgement.verdict
    return Text.assemble(
        (f"{label:<{_LABEL}}  ", "bold"),
        (f"{verdict.word:<{_WORD}}", f"bold {STYLE[verdict]}"),
        f"  {short_reason(event.judgement.reason, max(room - max(len(label), _LABEL), _REASON))}",
        (tail, "dim"),
    )


def print_skipped(console: Console, releases: Iterable[tuple[str, str | None]]) -> None:
    """Print the skipped releases (reason not None) of a range; releases with the same reason share a line."""
    rows = [
        (release, None if reason is None else short_reason(reason.replace(f"=={release}", "==VERSION")))
        for release, reason in releases
    ]
    for told in dict.fromkeys(reason for _, reason in rows if reason is not None):
        # listed_in_order needs the other releases, too: they interrupt a sequence.
        line = listed_in_order((release, reason == told) for release, reason in rows)
        print_line(console, Text.assemble(("  skipped   ", "yellow"), f"{line}: {told}"))


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
