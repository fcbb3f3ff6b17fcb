"""A history: every window of broken releases, the runs that show it, the releases that were not run, in sentences."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import cattrs
from attrs import field, frozen

from harness.bisection.answer import Effort, QuestionRecord
from harness.bisection.wording import between_in_words
from harness.model import Signature, Verdict
from harness.model.boundary import Boundary
from harness.model.signature import given_parts
from harness.model.text import listed, picked, sentence_and_table
from harness.model.verdict import Step
from harness.records import STORED_AS
from harness.search.survey import gaps_of

_NAMED = 5
_NO_EFFORT = Effort()


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
    has the repro's metrics and the run's `duration_s` (seconds) and `peak_memory_mib` (MiB). `is_flaky`: some of its
    runs passed, and others failed.
    """

    release: str
    state: RowState
    reason: str
    uploaded: str = ""
    observation: str = ""
    measured: dict[str, float] = field(factory=dict)
    is_flaky: bool = False

    @property
    def is_judged(self) -> bool:
        """Whether its runs show that it is good or bad."""
        return self.state in (RowState.GOOD, RowState.BAD)


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
    """The result of one scan for windows; everything else follows from the boundaries and the rows.

    `boundaries` are all changes from good to bad and back, the oldest first; one without `sides` is not confirmed by
    its runs. `rows` are all releases of the range, the oldest first; `steps` the judged runs, in their order. Of
    `stride` adjacent releases at least one was run or known.
    """

    question: QuestionRecord = field(metadata={STORED_AS: "asked"})
    signature: Signature | None
    boundaries: tuple[Boundary, ...]
    rows: tuple[ReleaseRow, ...]
    steps: tuple[Step, ...] = ()
    stride: int = 1
    platform: str = ""
    effort: Effort = _NO_EFFORT

    @property
    def subject(self) -> str:
        """The package whose releases were scanned."""
        return self.question.subject

    @property
    def repro(self) -> str:
        """The name of what ran."""
        return self.question.repro.name

    @property
    def status(self) -> HistoryStatus:
        """How the scan ended."""
        if windows := self.windows:
            return HistoryStatus.BROKEN if all(window.is_certain for window in windows) else HistoryStatus.UNSURE
        return HistoryStatus.NEVER_BROKEN if self.judged else HistoryStatus.UNSURE

    @property
    def sentence(self) -> str:
        """The answer."""
        return sentence_for(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """The limits of the answer."""
        return notes_for(self)

    @property
    def advice(self) -> str:
        """The next command, or ""."""
        return advice_for(self)

    @property
    def windows(self) -> tuple[BrokenWindow, ...]:
        """The windows, the oldest first: each from one boundary to the next, or to an end of the range."""
        judged = self.judged
        begins = [boundary for boundary in self.boundaries if not boundary.is_fix]
        fixes = [boundary for boundary in self.boundaries if boundary.is_fix]
        is_open = [bool(judged) and judged[end].state is RowState.BAD for end in (0, -1)]
        edges = zip([*[None] * is_open[0], *begins], [*fixes, *[None] * is_open[1]], strict=True)
        return tuple(self._window(begin, end) for begin, end in edges)

    @property
    def unseen(self) -> tuple[UntestedGaps, ...]:
        """An entry for each sequence of runs with the same verdict that has gaps."""
        names = [row.release for row in self.tried_rows]
        states = dict(enumerate(row.state for row in self.tried_rows))
        judged = [position for position, state in states.items() if state in (RowState.GOOD, RowState.BAD)]
        stretches: list[UntestedGaps] = []
        for state, same in groupby(judged, key=states.__getitem__):
            spans = [range(old + 1, new) for old, new in pairwise(same)]
            unknown = [[p for p in span if states[p] is not RowState.SKIP] for span in spans]
            if gaps := [gap for missing in unknown for gap in gaps_of(missing)]:
                longest = max(len(span) for span, missing in zip(spans, unknown, strict=True) if missing)
                named = tuple(tuple(names[p] for p in gap) for gap in gaps)
                stretches.append(UntestedGaps(Verdict(state.value), named, longest))
        return tuple(stretches)

    @property
    def tried_rows(self) -> tuple[ReleaseRow, ...]:
        """The releases that can be tried."""
        return tuple(row for row in self.rows if row.state is not RowState.LEFT_OUT)

    @property
    def judged(self) -> tuple[ReleaseRow, ...]:
        """The releases whose runs show that they are good or bad."""
        return tuple(row for row in self.rows if row.is_judged)

    @property
    def tried(self) -> int:
        """The number of releases that can be tried."""
        return len(self.tried_rows)

    @property
    def known(self) -> int:
        """The number of releases that the store answered."""
        return sum(step.cached for step in self.steps if step.attempt == 0)

    @property
    def probes(self) -> int:
        """The number of releases that were run now."""
        return self.effort.probes

    @property
    def flaky(self) -> tuple[str, ...]:
        """The releases that failed in some of their runs."""
        return tuple(row.release for row in self.rows if row.is_flaky)

    @property
    def drift(self) -> dict[str, tuple[str, ...]]:
        """What of its environment could not be held, by release."""
        return {step.release: step.drift for step in self.steps if step.drift}

    @property
    def altered(self) -> dict[str, tuple[str, ...]]:
        """The files of its environment that a run changed, by release."""
        return {step.release: step.altered for step in self.steps if step.altered}

    def _window(self, begin: Boundary | None, end: Boundary | None) -> BrokenWindow:
        judged = self.judged
        last_good, first_bad = begin.ends if begin is not None else (None, judged[0].release)
        last_bad, fixed_in = end.ends if end is not None else (judged[-1].release, None)
        first_bad, last_bad = str(first_bad), str(last_bad)
        before, after = self._between(last_good, first_bad), self._between(last_bad, fixed_in)
        inside = {last_good, first_bad, last_bad, fixed_in, *(r.release for r in self._between(first_bad, last_bad))}
        doubtful = self._doubtful
        return BrokenWindow(
            first_bad,
            last_bad,
            last_good,
            fixed_in,
            unsure_before=tuple(row.release for row in before if row.state is not RowState.LEFT_OUT),
            unsure_after=tuple(row.release for row in after if row.state is not RowState.LEFT_OUT),
            left_out={
                row.release: row.reason
                for rows, end_ in ((before, last_good), (after, fixed_in))
                for row in rows
                if end_ is not None and row.state is RowState.LEFT_OUT
            },
            unconfirmed=tuple(row.release for row in self.rows if row.release in inside & doubtful),
        )

    def _between(self, older: str | None, newer: str | None) -> tuple[ReleaseRow, ...]:
        """The rows between two releases; None is the end of the range."""
        names = [row.release for row in self.rows]
        start = names.index(older) + 1 if older is not None else 0
        return self.rows[start : names.index(newer) if newer is not None else len(names)]

    @property
    def _doubtful(self) -> set[str | None]:
        """The releases whose runs don't show their side of a change."""
        doubtful = {end for boundary in self.boundaries if not boundary.sides for end in boundary.ends}
        runs = Counter(step.release for step in self.steps if step.verdict is not Verdict.SKIP)
        outermost = (*self.judged[:1], *self.judged[-1:])
        doubtful |= {row.release for row in outermost if row.state is RowState.BAD and runs[row.release] == 1}
        return doubtful if any(row.state is RowState.GOOD for row in self.rows) else {*doubtful, *self.flaky}

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        rows = [(row.release, row.state.value, row.uploaded, row.reason) for row in self.rows]
        return sentence_and_table(self.sentence, ("release", "state", "uploaded", "reason"), rows)

    def as_json(self) -> dict[str, Any]:
        """Return the history as `harness history --json` prints it (schema 1); a metric that is not finite is null."""
        return {
            "schema": 1,
            **picked(self, "subject status stride tried probes known sentence notes advice repro"),
            **picked(self.question, "device python"),
            "platform": self.platform,
            "as_of": self.question.as_of,
            "flaky": self.flaky,
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
            "wall_s": round(self.effort.wall_s, 2),
            "drift": {release: list(lines) for release, lines in self.drift.items()},
            "altered": {release: list(files) for release, files in self.altered.items()},
        }


def sentence_for(history: History) -> str:
    """Return the sentences that name every window and say which of its edges are not certain."""
    judged = [row.release for row in history.judged]
    if not judged:
        return f"Not sure: no release of {history.subject} could be judged."
    lead = f"{history.subject} with {history.repro}"
    windows = history.windows
    if not windows:
        return f"{lead}: no broken release found from {judged[0]} to {judged[-1]}."
    parts = [window_text(window) for window in windows]
    doubts = [text for window in windows for text in _doubts(history.subject, window)]
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


def _doubts(subject: str, window: BrokenWindow) -> list[str]:
    edges = (
        ("began", window.last_good, window.unsure_before, window.first_bad, (window.first_bad,)),
        ("ended", window.last_bad, window.unsure_after, window.fixed_in, (str(window.fixed_in),)),
    )
    doubts = [
        f"Not sure where it {what}: {between_in_words(subject, older, newer, (*hidden, *side))}."
        for what, older, hidden, newer, side in edges
        if hidden and older and newer
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


def advice_for(history: History) -> str:
    """Return one line that says what to run next, or ""."""
    words = " ".join([history.subject, *history.question.typed])
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
