"""Builds a history from the record of a scan: windows, unseen gaps, and a row for each release."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.history.answer import (
    BrokenWindow,
    History,
    HistoryStatus,
    ReleaseRow,
    RowState,
    Unseen,
)
from harness.history.wording import advice_for, notes_for, sentence_for
from harness.model import Verdict
from harness.search.gaps import gaps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.history.plan import HistoryPlan
    from harness.model import Judgement, Observation
    from harness.planning.plan import Plan
    from harness.probe import Judge
    from harness.probe.judge import Record
    from harness.search import Trial, Window, WindowsResult

_BETWEEN = {Verdict.GOOD: RowState.BETWEEN_GOOD, Verdict.BAD: RowState.BETWEEN_BAD}


@frozen
class ReleaseRuns:
    """The verdict on a release from all its runs, and the first of them with that verdict."""

    judgement: Judgement
    observation: Observation


def runs_of_positions(record: Record[Trial], judge: Judge, is_settled: Callable[[int], bool]) -> dict[int, ReleaseRuns]:
    """Return the runs of each release that has a verdict, by position."""
    found: dict[int, ReleaseRuns] = {}
    for position in sorted({trial.position for trial in record.observations}):
        if is_settled(position):
            runs = [record.observations[trial] for trial in sorted(record.observations) if trial.position == position]
            found[position] = ReleaseRuns(*judge.together(runs))
    return found


def history_of(
    history_plan: HistoryPlan,
    result: WindowsResult,
    record: Record[Trial],
    runs: Mapping[int, ReleaseRuns],
    wall_s: float,
) -> History:
    """Build the history of a finished scan; `runs` are the releases that have a verdict, `wall_s` is in seconds."""
    plan = history_plan.plan
    verdicts = {position: run.judgement.verdict for position, run in runs.items()}
    drift = {_name(plan, trial.position): seen.drift for trial, seen in record.observations.items() if seen.drift}
    ran = {seen.key for seen in record.observations.values() if seen.outcome.ran}
    altered = {_name(plan, trial.position): seen.altered for trial, seen in record.observations.items() if seen.altered}
    windows = tuple(_window(plan, window) for window in result.windows)
    history = History(
        subject=plan.subject,
        repro=plan.repro.name,
        status=_status(windows, verdicts),
        sentence="",
        signature=record.signature,
        windows=windows,
        unseen=tuple(_unseen(plan, verdicts)),
        rows=_rows(plan, verdicts, runs),
        steps=tuple(record.steps),
        device=plan.device.value,
        python=plan.interpreter.version,
        platform=plan.interpreter.platform,
        as_of=plan.as_of,
        stride=history_plan.stride,
        drift=drift,
        altered=altered,
        probes=len({step.release for step in record.steps if not step.cached and step.observation in ran}),
        wall_s=wall_s,
    )
    history = evolve(history, sentence=sentence_for(history), notes=notes_for(history))
    return evolve(history, advice=advice_for(history, plan.question.typed))


def _status(windows: tuple[BrokenWindow, ...], verdicts: Mapping[int, Verdict]) -> HistoryStatus:
    if windows:
        certain = all(window.is_certain for window in windows)
        return HistoryStatus.BROKEN if certain else HistoryStatus.UNSURE
    return HistoryStatus.NEVER_BROKEN if Verdict.GOOD in verdicts.values() else HistoryStatus.UNSURE


def _window(plan: Plan, window: Window) -> BrokenWindow:
    def name(position: int | None) -> str | None:
        return None if position is None else _name(plan, position)

    # A release that was left out may come just before the first bad or the first good one.
    edges = [(window.started_after, window.first_bad), (window.last_bad, window.fixed_at)]
    left_out: dict[str, str] = {}
    for old, new in edges:
        if old is not None and new is not None:
            low, high = plan.releases[old].version, plan.releases[new].version
            left_out |= {row.release: row.reason for row in plan.left_out if low < Version(row.release) < high}
    return BrokenWindow(
        first_bad=_name(plan, window.first_bad),
        last_bad=_name(plan, window.last_bad),
        last_good=name(window.started_after),
        fixed_in=name(window.fixed_at),
        unsure_before=tuple(_name(plan, p) for p in window.suspects if p < window.first_bad),
        unsure_after=tuple(_name(plan, p) for p in window.suspects if p > window.last_bad),
        left_out=left_out,
    )


def _unseen(plan: Plan, verdicts: Mapping[int, Verdict]) -> list[Unseen]:
    """Return one entry for each sequence of runs with the same verdict that has gaps."""
    found: list[Unseen] = []
    testable = sorted(position for position, verdict in verdicts.items() if verdict is not Verdict.SKIP)
    fresh = True
    for old, new in pairwise(testable):
        if verdicts[old] is not verdicts[new]:
            fresh = True
            continue
        gaps = tuple(
            tuple(_name(plan, p) for p in gap) for gap in gaps_of(p for p in range(old + 1, new) if p not in verdicts)
        )
        if gaps and fresh:
            found.append(Unseen(verdicts[old], gaps, new - old - 1))
            fresh = False
        elif gaps:
            last = found[-1]
            found[-1] = evolve(last, gaps=(*last.gaps, *gaps), longest=max(last.longest, new - old - 1))
    return found


def _rows(plan: Plan, verdicts: Mapping[int, Verdict], runs: Mapping[int, ReleaseRuns]) -> tuple[ReleaseRow, ...]:
    rows = [ReleaseRow(row.release, RowState.LEFT_OUT, row.reason) for row in plan.left_out]
    for position, release in enumerate(plan.releases):
        name = str(release.version)
        day = release.uploaded.date().isoformat() if release.uploaded else ""
        if (run := runs.get(position)) is not None:
            state, seen = RowState(run.judgement.verdict.value), run.observation
            rows.append(ReleaseRow(name, state, run.judgement.reason, day, seen.key, _measured(seen)))
        else:
            rows.append(_not_run(plan, name, day, position, verdicts))
    return tuple(sorted(rows, key=lambda row: Version(row.release)))


def _not_run(plan: Plan, name: str, day: str, position: int, verdicts: Mapping[int, Verdict]) -> ReleaseRow:
    testable = [p for p, verdict in verdicts.items() if verdict is not Verdict.SKIP]
    before = max((p for p in testable if p < position), default=None)
    after = min((p for p in testable if p > position), default=None)
    if before is None or after is None or verdicts[before] is not verdicts[after]:
        return ReleaseRow(name, RowState.UNKNOWN, "not run", day)
    verdict = verdicts[before].value
    words = f"not run: {_name(plan, before)} and {_name(plan, after)} around it are {verdict}"
    return ReleaseRow(name, _BETWEEN[verdicts[before]], words, day)


def _measured(observation: Observation) -> dict[str, float]:
    measured = dict(observation.metrics)
    if observation.outcome.ran:
        measured["duration_s"] = observation.duration_s
    if observation.peak_memory:
        measured["peak_memory_mib"] = round(observation.peak_memory / 2**20, 1)
    return measured


def _name(plan: Plan, position: int) -> str:
    return str(plan.releases[position].version)
