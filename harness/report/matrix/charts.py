"""The metrics of a matrix's runs as charts, with one line per column of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.report.charts import Chart, ChartPoint, metric_charts
from harness.report.matrix.pivot import axis_name, parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.matrix.running import Standing
    from harness.model import Observation
    from harness.report.matrix.pivot import Choice, Pivot

_LINES = 6  # the number of colours in charts.css


@frozen
class Plots:
    """The charts of one part of a matrix; `note` says what is left out."""

    title: str
    points: tuple[ChartPoint, ...]
    note: str = ""

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of the metrics."""
        return metric_charts(self.points)


def plots(laid: Pivot, standings: Sequence[Standing], ids: Sequence[str]) -> tuple[Plots, ...]:
    """Return charts over the vertical axis; none if fewer than two of its values have metrics."""
    return tuple(filter(None, (_plots(title, part, standings, ids) for title, part in parts(laid))))


def _plots(title: str, laid: Pivot, standings: Sequence[Standing], ids: Sequence[str]) -> Plots | None:
    numbered = {
        (row, column): place[0]
        for (row, column), place in laid.places.items()
        if place and any(True for _ in _numbers(standings[place[0]]))
    }
    lines = [column for column in laid.columns if any(column == other for _, other in numbered)]
    rows = [row for row in laid.rows if any(row == other for other, _ in numbered)]
    if len(rows) < 2:
        return None
    # Points are in the order of the rows, which sets the order of labels; the order of lines is that of the columns.
    points = [
        ChartPoint(metric, row, value, standings[position].word, _named(laid, column), f"#{ids[position]}")
        for row in rows
        for column in lines[:_LINES]
        if (position := numbered.get((row, column))) is not None
        for metric, value in _numbers(standings[position])
    ]
    note = f"The first {_LINES} of {len(lines)} columns are drawn." if len(lines) > _LINES else ""
    return Plots(title, tuple(points), note)


def _numbers(standing: Standing) -> Iterator[tuple[str, float]]:
    """The repro's metrics, then those that the harness measures."""
    if standing.run is None or not standing.run.observation.outcome.ran:
        return
    seen: Observation = standing.run.observation
    yield from seen.metrics.items()
    yield "duration_s", seen.duration_s
    if seen.peak_memory is not None:
        yield "peak_memory_mib", seen.peak_memory / 2**20


def _named(laid: Pivot, column: Choice) -> str:
    return ", ".join(f"{axis_name(axis)}={value}" for axis, value in zip(laid.across, column, strict=True) if value)
