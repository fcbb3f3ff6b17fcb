"""A history: every window of broken releases, the runs that show it, the releases that were not run, in sentences."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import cattrs
from attrs import field, frozen

from harness.model import Signature, Verdict
from harness.model.signature import given_parts
from harness.model.text import listed, picked, sentence_and_table
from harness.model.verdict import Step

_NAMED = 5


class HistoryStatus(enum.StrEnum):
    """How a scan ended; it decides the exit code of `harness history`."""

    BROKEN = "broken"  # at least one window, and the edges of all windows are certain
    NEVER_BROKEN = "never-broken"
    UNSURE = "unsure"  # skipped releases hide an edge, or nothing could be judged

    @property
    def exit_code(self) -> int:
        """0: windows were found, 1: no release is broken, 3: not sure."""
        return {HistoryStatus.BROKEN: 0, HistoryStatus.NEVER_BROKEN: 1, HistoryStatus.UNSURE: 3}[self]


class RowState(enum.StrEnum):
    """The state of one release; `symbol` is its letter in a picture."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    BETWEEN_GOOD = "between-good"  # not run: the nearest runs on both sides are good
    BETWEEN_BAD = "between-bad"
    UNKNOWN = "untried"  # not run, and its neighbours don't decide it
    LEFT_OUT = "left-out"

    @property
    def symbol(self) -> str:
        """One character, lower case if the release was not run."""
        return "GBSgb?x"[list(RowState).index(self)]


@frozen
class ReleaseRow:
    """One release of the range, including those left out.

    `reason` explains its state; `uploaded` is an ISO date and `observation` a key, each "" if unknown. `measured`
    has the repro's metrics and the run's `duration_s` (seconds) and `peak_memory_mib` (MiB).
    """

    release: str
    state: RowState
    reason: str
    uploaded: str = ""
    observation: str = ""
    measured: dict[str, float] = field(factory=dict)


@frozen
class BrokenWindow:
    """A range of broken releases; `first_bad` and `last_bad` are its outermost bad runs.

    `last_good` is the nearest good run before it and `fixed_in` the nearest after it, or None. `unsure_before` and
    `unsure_after` are releases at its edges that could not be judged; `left_out` maps releases at its edges that were
    not tried to the reason. `unconfirmed` are releases in it or next to it whose runs do not show their side.
    """

    first_bad: str
    last_bad: str
    last_good: str | None = None
    fixed_in: str | None = None
    unsure_before: tuple[str, ...] = ()
    unsure_after: tuple[str, ...] = ()
    left_out: dict[str, str] = field(factory=dict)
    unconfirmed: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether the good and the bad run are adjacent at each edge that has both, and enough runs agree there."""
        hidden = (self.last_good and self.unsure_before) or (self.fixed_in and self.unsure_after)
        return not hidden and not self.unconfirmed


@frozen
class UntestedGaps:
    """Gaps between runs with the same verdict, which could hide another window.

    `gaps` are groups of adjacent releases that were not run; `longest` is the largest number of adjacent releases,
    including skipped ones, without a good or bad run.
    """

    verdict: Verdict
    gaps: tuple[tuple[str, ...], ...]
    longest: int


@frozen
class History:
    """The result of one scan for windows.

    `sentence` is the answer, `notes` its limits, `advice` the next command. `stride` is the scan interval: of `stride`
    adjacent releases at least one was run or known. `rows` are all releases of the range, the oldest first; `steps`
    the judged ones, in the order they were run. `drift` lists by release what could not be held, `altered` the files
    that its run changed in its environment; `flaky` are releases that failed in some of their runs; `probes` counts
    the runs made now, not answered by the store.
    """

    subject: str
    repro: str
    status: HistoryStatus
    sentence: str
    signature: Signature | None
    windows: tuple[BrokenWindow, ...]
    unseen: tuple[UntestedGaps, ...]
    rows: tuple[ReleaseRow, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    advice: str = ""
    device: str = "cpu"
    python: str = ""
    platform: str = ""
    as_of: str = "none"
    stride: int = 1
    drift: dict[str, tuple[str, ...]] = field(factory=dict)
    altered: dict[str, tuple[str, ...]] = field(factory=dict)
    flaky: tuple[str, ...] = ()
    probes: int = 0
    wall_s: float = 0.0

    @property
    def tried(self) -> int:
        """The number of releases that can be tried."""
        return sum(row.state is not RowState.LEFT_OUT for row in self.rows)

    @property
    def known(self) -> int:
        """The number of releases that the store answered."""
        return sum(step.cached for step in self.steps if step.attempt == 0)

    def _repr_html_(self) -> str:
        rows = [(row.release, row.state.value, row.uploaded, row.reason) for row in self.rows]
        return sentence_and_table(self.sentence, ("release", "state", "uploaded", "reason"), rows)

    def as_json(self) -> dict[str, Any]:
        """Return the history as `harness history --json` prints it (schema 1); a metric that is not finite is null."""
        return {
            "schema": 1,
            **picked(self, "subject status stride tried probes known sentence notes advice"),
            **picked(self, "repro device python platform as_of flaky"),
            "windows": [{**cattrs.unstructure(window), "certain": window.is_certain} for window in self.windows],
            "unseen": [cattrs.unstructure(stretch) for stretch in self.unseen],
            "signature": given_parts(self.signature),
            "steps": [step.as_json() for step in self.steps],
            "releases": [
                {
                    **picked(row, "release state reason"),
                    "uploaded": row.uploaded or None,
                    "observation": row.observation or None,
                    "measured": {k: v if math.isfinite(v) else None for k, v in row.measured.items()},
                }
                for row in self.rows
            ],
            "wall_s": round(self.wall_s, 2),
            "drift": {release: list(told) for release, told in self.drift.items()},
            "altered": {release: list(files) for release, files in self.altered.items()},
        }


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
    edges = (
        ("began", window.last_good, window.unsure_before, window.first_bad),
        ("ended", window.last_bad, window.unsure_after, window.fixed_in),
    )
    doubts = [
        f"Not sure where it {what}: {listed(hidden, _NAMED)}, between {before} and {after}, could not be judged."
        for what, before, hidden, after in edges
        if hidden and before and after
    ]
    if window.unconfirmed:
        doubts.append(f"Not sure on which side of a change {listed(window.unconfirmed, _NAMED)} is: the bug is flaky.")
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
    if history.flaky:
        times = "one that passes was run until that failure rate is unlikely"
        notes.append(f"The bug is flaky: {listed(history.flaky, _NAMED)} failed in some runs only, and {times}.")
    for window in history.windows:
        if window.left_out:
            lie, were = _verbs(len(window.left_out))
            reasons = listed(dict.fromkeys(window.left_out.values()), _NAMED)
            of = f"the window from {window.first_bad} on"
            notes.append(f"{listed(window.left_out, _NAMED)} {lie} at an edge of {of} and {were} left out: {reasons}.")
    if history.signature is not None and history.signature.captured:
        first = next((step.release for step in history.steps if step.verdict is Verdict.BAD), "")
        notes.append(f"No signature was given, so it was captured from {first}; other failures are skipped.")
    return tuple(notes)


def _verbs(count: int) -> tuple[str, str]:
    return ("lies", "was") if count == 1 else ("lie", "were")


def advice_for(history: History, typed: Sequence[str]) -> str:
    """Return one line that says what to run next, or ""."""
    words = " ".join([history.subject, *typed])
    if history.status is HistoryStatus.UNSURE and any(window.unconfirmed for window in history.windows):
        return f"To measure how often it fails on each side: harness bisect {words} --flaky"
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
