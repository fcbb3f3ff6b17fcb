"""Builds the page of a history: windows, a cell for each release, charts of metrics, and logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import frozen

from harness.history.answer import BrokenWindow, History, ReleaseRow, RowState
from harness.model import Verdict
from harness.model.text import listed
from harness.redact import Private, redacted
from harness.report.altered import AlteredRow, altered_rows
from harness.report.answer.content import RangeCell
from harness.report.charts import Chart, ChartPoint, metric_charts
from harness.report.logs import tail
from harness.report.templating import filled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.history import HistoryPlan
    from harness.model.verdict import Step

_JUDGED = (RowState.GOOD, RowState.BAD, RowState.SKIP)
_DEVICES = {"emulated": "CPU with a stand-in for CUDA", "cpu": "CPU", "cuda": "CUDA"}


@frozen
class WindowRow:
    """One window; "" for a missing end."""

    last_good: str
    first_bad: str
    last_bad: str
    fixed_in: str
    certainty: str


@frozen
class RunRow:
    """One release and its verdict; `anchor` is the name of its log in the page, `log` the end of its output."""

    number: int
    release: str
    verdict: str
    reason: str
    took: str
    observation: str
    anchor: str
    log: str


@frozen
class HistoryContent:
    """The content of a history's page or Markdown; texts are plain, not escaped for any format."""

    title: str
    sentence: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    windows: tuple[WindowRow, ...]
    cells: tuple[RangeCell, ...]
    picture: str
    points: tuple[ChartPoint, ...]
    runs: tuple[RunRow, ...]
    left_out: tuple[tuple[str, str], ...]
    drift: tuple[str, ...]
    altered: tuple[AlteredRow, ...]
    advice: str
    repro_file: str
    repro_source: str
    footer: str

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of the metrics."""
        return metric_charts(self.points)


def history_content(
    history_plan: HistoryPlan,
    history: History,
    *,
    kept: str,
    logs: Mapping[str, str],
    private: Private = Private(),  # noqa: B008 - a frozen value
) -> HistoryContent:
    """Return the content for a history, without private data.

    `kept` is the time of storing (ISO 8601, UTC); `logs` maps observation keys to the output of these runs.
    """
    repro = history_plan.plan.repro
    tried = [row for row in history.rows if row.state is not RowState.LEFT_OUT]
    content = HistoryContent(
        title=f"{history.subject} with {history.repro}, {tried[0].release} to {tried[-1].release}",
        sentence=history.sentence,
        notes=history.notes,
        facts=tuple(_facts(history_plan, history)),
        windows=tuple(map(_window, history.windows)),
        cells=tuple(map(_cell, history.rows)),
        picture="".join(row.state.symbol for row in history.rows),
        points=tuple(point for row in history.rows for point in _points(row)),
        runs=tuple(_runs(history, logs)),
        left_out=tuple((row.release, row.reason) for row in history.rows if row.state is RowState.LEFT_OUT),
        drift=tuple(f"{release}: {'; '.join(told)}" for release, told in history.drift.items()),
        altered=altered_rows(history.altered),
        advice=history.advice,
        repro_file=f"{repro.name}.py" if repro.source else "",
        repro_source=repro.source.rstrip("\n"),
        footer=f"{history.probes} releases run, {history.known} known before; {kept[:10]}",
    )
    return redacted(content, private)  # type: ignore[no-any-return]


def render_history_html(content: HistoryContent) -> str:
    """Render one HTML file without external resources."""
    return filled("history.html.j2", r=content)


def render_history_markdown(content: HistoryContent) -> str:
    """Render Markdown for GitHub, without the logs."""
    return filled("history.md.j2", r=content).strip("\n") + "\n"


def _facts(history_plan: HistoryPlan, history: History) -> list[tuple[str, str]]:
    plan = history_plan.plan
    judged = sum(row.state in _JUDGED for row in history.rows)
    near = plan.releases[plan.bad if plan.bad is not None else -1].version
    around = {"none": f"kept close to those of {near}", "era": "as they were on the day of each release"}
    told = [
        ("Recognised by", str(history.signature) if history.signature else ""),
        ("Repro", f"{plan.repro.name}: {plan.repro.summary}" if plan.repro.summary else plan.repro.name),
        ("Parameters", ", ".join(f"{name} = {json.dumps(value)}" for name, value in plan.repro.params.items())),
        ("Releases", f"{judged} of {history.tried} have a run of their own"),
        ("Device", _DEVICES.get(history.device, history.device)),
        ("Python", history.python),
        ("Platform", history.platform),
        ("Held", ", ".join(plan.holds)),
        ("Other packages", around.get(history.as_of, f"as they were on {history.as_of}")),
    ]
    return [(label, text) for label, text in told if text]


def _window(window: BrokenWindow) -> WindowRow:
    doubts = [
        f"{listed(releases)} may be {where}, and could not be judged"
        for releases, where, known in (
            (window.unsure_before, "the first broken one", window.last_good),
            (window.unsure_after, "broken too", window.fixed_in),
        )
        if releases and known
    ]
    return WindowRow(
        last_good=window.last_good or "",
        first_bad=window.first_bad,
        last_bad=window.last_bad,
        fixed_in=window.fixed_in or "",
        certainty="; ".join(doubts) or _certainty(window),
    )


def _certainty(window: BrokenWindow) -> str:
    """A phrase for how certain the edges of a window are, if none of its neighbours was skipped."""
    sides = (window.last_good, "before"), (window.fixed_in, "after")
    missing = [side for known, side in sides if known is None]
    if missing:
        return f"certain in this range, which has no good run {' or '.join(missing)} it"
    return "certain among the releases that were tried" if window.left_out else "certain: its neighbours were run"


def _cell(row: ReleaseRow) -> RangeCell:
    day = f", {row.uploaded}" if row.uploaded else ""
    said = f"left out ({row.reason})" if row.state is RowState.LEFT_OUT else row.reason
    if row.state in _JUDGED:
        said = f"{Verdict.SKIP.word if row.state is RowState.SKIP else row.state.value} ({row.reason})"
    href = f"#{_anchor(row.release)}" if row.observation else ""
    return RangeCell(row.release, row.state.symbol, row.state.value, f"{row.release}{day}: {said}", href)


def _points(row: ReleaseRow) -> list[ChartPoint]:
    href = f"#{_anchor(row.release)}"
    return [
        ChartPoint(metric, row.release, value, row.state.value, href=href) for metric, value in row.measured.items()
    ]


def _runs(history: History, logs: Mapping[str, str]) -> list[RunRow]:
    judged = [row for row in history.rows if row.state in _JUDGED]
    steps = {row.release: [step for step in history.steps if step.release == row.release] for row in judged}
    return [
        RunRow(
            number=number,
            release=row.release,
            verdict=row.state.value,
            reason=row.reason,
            took=_took(steps[row.release]),
            observation=row.observation,
            anchor=_anchor(row.release),
            log=tail(logs.get(row.observation, "")),
        )
        for number, row in enumerate(judged, 1)
    ]


def _took(steps: Sequence[Step]) -> str:
    """The total duration of a release's runs."""
    if all(step.cached for step in steps):
        return "known already"
    return f"{sum(step.seconds for step in steps):.1f} s"


def _anchor(release: str) -> str:
    return f"run-{release}"
