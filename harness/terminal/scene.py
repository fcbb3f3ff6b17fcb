"""What is drawn of a running search: its headline, the range as a picture, and what a candidate is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rich.text import Text

from harness.search import PositionState

if TYPE_CHECKING:
    from collections.abc import Hashable

    from harness.planning.plan import Plan

STATE_STYLE = {
    PositionState.GOOD: "bold green",
    PositionState.BAD: "bold red",
    PositionState.SKIP: "yellow",
    PositionState.UNTRIED: "default",
    PositionState.EXCLUDED: "dim",
}


class Pictured(Protocol):
    """A search over positions that can be drawn."""

    @property
    def states(self) -> tuple[PositionState, ...]:
        """What is known of every position."""
        ...

    def remaining(self) -> int:
        """Upper estimate of the runs left."""
        ...


class Scene(Protocol):
    """What is drawn: the progress of a bisection, or of a scan for windows."""

    @property
    def plan(self) -> Plan:
        """What is searched."""
        ...

    @property
    def search(self) -> Pictured:
        """The search itself."""
        ...

    @property
    def headline(self) -> str:
        """What is looked for."""
        ...

    @property
    def disk(self) -> str:
        """What is foreseen of the disk; "" where nothing is."""
        ...

    @property
    def captured_from(self) -> str:
        """Which run a signature is taken from, where none is given."""
        ...

    def name(self, candidate: Any, /) -> str:
        """What a candidate of the search is called."""
        ...


def heading(progress: Scene) -> list[str]:
    """The first lines: what is searched, where, and what was chosen for the user."""
    plan = progress.plan
    first, last = plan.releases[0].version, plan.releases[-1].version
    lines = [
        f"{progress.headline}: {plan.subject} {first} to {last}, {len(plan.releases)} releases, "
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


def picture(progress: Scene) -> Text:
    """The range as one letter for each release, the oldest first; what can't matter at the far ends is dropped."""
    states = progress.search.states
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    text = Text("[")
    for i in range(shown[0], shown[-1] + 1) if shown else ():
        text.append(states[i].symbol, STATE_STYLE[states[i]])
    return text.append("]")


def name_of(progress: Scene | None, candidate: Hashable) -> str:
    """What a candidate is called."""
    return progress.name(candidate) if progress is not None else str(candidate)


def source_of(progress: Scene | None) -> str:
    """What a signature was taken from."""
    return progress.captured_from if progress is not None else "the first failing run"
