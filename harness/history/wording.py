"""The sentences of a history: its windows, the limits of the answer, and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.history.answer import BrokenWindow, History, HistoryStatus, RowState
from harness.model import Verdict
from harness.model.text import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED = 5


def sentence_for(history: History) -> str:
    """Return the sentences that name every window and say which of its edges are not certain."""
    judged = [row.release for row in history.rows if row.state in (RowState.GOOD, RowState.BAD)]
    if not judged:
        return f"Not sure: no release of {history.subject} could be judged."
    lead = f"{history.subject} with {history.repro}"
    if not history.windows:
        return f"{lead}: no broken release found from {judged[0]} to {judged[-1]}."
    parts = [window_text(window) for window in history.windows]
    doubts = [text for window in history.windows for text in _doubts(window)]
    return " ".join([f"{lead}: {'; '.join(parts)}.", *doubts])


def window_text(window: BrokenWindow) -> str:
    """Describe one window: "broken 4.53.0 to 4.57.6, good from 5.0.0"."""
    if window.last_good is None and window.fixed_in is None:
        return f"broken in every release that could be judged, {spanned([window.first_bad, window.last_bad])}"
    if window.last_good is None:
        return f"already broken in {window.first_bad}, up to {window.last_bad}, good from {window.fixed_in}"
    if window.fixed_in is None:
        return f"broken from {window.first_bad} and still in {window.last_bad}"
    if window.first_bad == window.last_bad:
        return f"broken in {window.first_bad} only, good from {window.fixed_in}"
    return f"broken {window.first_bad} to {window.last_bad}, good from {window.fixed_in}"


def _doubts(window: BrokenWindow) -> list[str]:
    doubts = []
    if window.last_good and window.unsure_before:
        which = listed(window.unsure_before, _NAMED)
        doubts.append(
            f"Not sure where it began: {which}, between {window.last_good} and {window.first_bad}, could not be judged."
        )
    if window.fixed_in and window.unsure_after:
        which = listed(window.unsure_after, _NAMED)
        doubts.append(
            f"Not sure where it ended: {which}, between {window.last_bad} and {window.fixed_in}, could not be judged."
        )
    return doubts


def notes_for(history: History) -> tuple[str, ...]:
    """Return the limits of the answer, one sentence each."""
    notes = []
    for stretch in history.unseen:
        kind = stretch.verdict.value
        hidden = "a window" if stretch.verdict is Verdict.GOOD else "a good range"
        named = listed((spanned(gap) for gap in stretch.gaps), _NAMED)
        lie, were = _verbs(sum(map(len, stretch.gaps)))
        most = "1 release" if stretch.longest == 1 else f"at most {stretch.longest} releases"
        notes.append(f"{named} {lie} between {kind} runs and {were} not run; {hidden} of {most} could hide there.")
    for window in history.windows:
        if window.left_out:
            lie, were = _verbs(len(window.left_out))
            reasons = listed(dict.fromkeys(window.left_out.values()), _NAMED)
            of = f"the window from {window.first_bad} on"
            notes.append(f"{listed(window.left_out, _NAMED)} {lie} at an edge of {of} and {were} left out: {reasons}.")
    notes += _beyond(history)
    if history.signature is not None and history.signature.captured:
        first = next((step.release for step in history.steps if step.verdict is Verdict.BAD), "")
        notes.append(f"No signature was given, so it was captured from {first}; other failures are skipped.")
    return tuple(notes)


def _verbs(count: int) -> tuple[str, str]:
    return ("lies", "was") if count == 1 else ("lie", "were")


def _beyond(history: History) -> list[str]:
    """Return notes on the releases before and after all judged ones, which were skipped or not run."""
    rows = [row for row in history.rows if row.state is not RowState.LEFT_OUT]
    judged = [i for i, row in enumerate(rows) if row.state in (RowState.GOOD, RowState.BAD)]
    if not judged:
        return []
    ends = [("before", rows[: judged[0]], rows[judged[0]]), ("after", rows[judged[-1] + 1 :], rows[judged[-1]])]
    notes = []
    for side, missing, near in ends:
        skipped = [row.release for row in missing if row.state is RowState.SKIP]
        unrun = [row.release for row in missing if row.state is not RowState.SKIP]
        if skipped:
            notes.append(f"{listed(skipped, _NAMED)}, {side} {near.release}, could not be judged.")
        if unrun:
            notes.append(f"{listed(unrun, _NAMED)}, {side} {near.release}, {_verbs(len(unrun))[1]} not run.")
    return notes


def advice_for(history: History, typed: Sequence[str]) -> str:
    """Return one line that says what to run next, or ""."""
    words = " ".join([history.subject, *typed])
    if history.status is HistoryStatus.UNSURE:
        return "Skipped releases hide an edge; --with, --hold or --python may make them run"
    begun = [window for window in history.windows if window.last_good is not None]
    if begun:
        ends = f"--good {begun[-1].last_good} --bad {begun[-1].first_bad}"
        return f"To find what in {begun[-1].first_bad} broke it: harness bisect {words} {ends}"
    if history.unseen:
        return f"To run every release: harness history {words} --max-gap 1"
    return ""


def spanned(ends: Sequence[str]) -> str:
    """Return "FIRST to LAST", or the only one."""
    return ends[0] if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"
