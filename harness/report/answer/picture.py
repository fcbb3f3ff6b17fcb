"""The range of releases as cells, one each, with its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.report.answer.content import RangeCell
from harness.search import PositionState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.report.answer.archive import KeptAnswer

_LEFT_OUT = ("left-out", "x")


def cells_of(kept: KeptAnswer) -> tuple[RangeCell, ...]:
    """Return one cell for each release between the first and the last with a verdict, left-out ones included."""
    answer = kept.answer
    verdicts = {step.release: step for step in answer.steps}
    if not verdicts:
        return ()
    dates = {release.version: release.uploaded for release in kept.releases}
    names = {*dates, *verdicts, *answer.left_out}
    cells = []
    for name in _between(verdicts, names, [release.version for release in kept.releases]):
        day = f", {dates[name]}" if dates.get(name) else ""
        if step := verdicts.get(name):
            state = PositionState(step.verdict.value)
            cells.append(
                RangeCell(name, state.symbol, state.value, f"{name}{day}: {step.verdict.word} ({step.reason})")
            )
        elif name in answer.left_out:
            cells.append(
                RangeCell(name, _LEFT_OUT[1], _LEFT_OUT[0], f"{name}{day}: left out ({answer.left_out[name]})")
            )
        else:
            state = PositionState.UNTRIED if name in answer.suspects else PositionState.EXCLUDED
            why = "not run" if state is PositionState.UNTRIED else "not run: its verdict can't matter"
            cells.append(RangeCell(name, state.symbol, state.value, f"{name}{day}: {why}"))
    return tuple(cells)


def _between(judged: Iterable[str], names: Iterable[str], listed: list[str]) -> list[str]:
    """The names from the first to the last with a verdict: releases by version, commits in the order of `listed`."""
    try:
        first, last = (end(map(Version, judged)) for end in (min, max))
        return sorted((name for name in names if first <= Version(name) <= last), key=Version)
    except InvalidVersion:
        inside = [position for position, name in enumerate(listed) if name in set(judged)]
        return listed[min(inside) : max(inside) + 1] if inside else list(judged)
