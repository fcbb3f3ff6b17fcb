"""Charts of numbers over releases, as SVG elements for a page with `charts.css`.

Every value is a point with a label for screen readers, a tooltip and a link. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from attrs import frozen

from harness.model.text import counted, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH, _HEIGHT, _MARGIN = 520, 250, 8
_CHARACTER = 5.6  # the mean width of a character of 10px
_SLANT = math.sin(math.radians(45))
_LABELS = 18  # more don't fit
_LONGEST_LABEL = 18  # characters
_STEPS = (2, 5, 10, 20)  # of a tenth of the range's power of ten
_MOST_STEPS = 5
_TITLES = {"duration_s": "run, seconds", "peak_memory_mib": "peak memory, MiB"}


@frozen
class ChartPoint:
    """One number: `metric` selects the chart, `series` the line, `label` the position on the x axis.

    `verdict` is good, bad or skip; `href` is the link of the point, "" for none.
    """

    metric: str
    label: str
    value: float
    verdict: str
    series: str = ""
    href: str = ""

    @property
    def place(self) -> str:
        """The label and the line, in words."""
        return f"{self.label}, {self.series}" if self.series else self.label


@frozen
class Chart:
    """The chart of one metric. `svg` is an element for a page with `charts.css`; "" if no point can be drawn.

    `series` are the names of its lines, in the order of their colours; `missing` lists the points that can't be drawn,
    such as a loss of NaN.
    """

    title: str
    svg: str
    series: tuple[str, ...]
    missing: tuple[str, ...] = ()


def metric_charts(points: Iterable[ChartPoint]) -> tuple[Chart, ...]:
    """Return a chart for each metric, all with the same x axis, so that a label without a number shows as a gap.

    Metrics, lines and labels are in the order of the points. The last of several points with the same metric, line and
    label counts.
    """
    points = tuple(points)
    labels = list(dict.fromkeys(point.label for point in points))
    by_metric: dict[str, list[ChartPoint]] = {}
    for point in points:
        by_metric.setdefault(point.metric, []).append(point)
    return tuple(_chart(metric, of_metric, labels) for metric, of_metric in by_metric.items())


def _chart(metric: str, points: list[ChartPoint], labels: list[str]) -> Chart:
    title = _TITLES.get(metric, metric)
    series: dict[str, dict[str, ChartPoint]] = {}
    for point in points:
        series.setdefault(point.series, {})[point.label] = point
    all_points = [point for line in series.values() for point in line.values()]
    finite = [point for point in all_points if math.isfinite(point.value)]
    return Chart(
        title=title,
        svg=_drawn(title, series.values(), finite, labels) if finite else "",
        series=tuple(series),
        missing=tuple(f"{point.place}: {point.value}" for point in all_points if not math.isfinite(point.value)),
    )


def _drawn(title: str, series: Iterable[dict[str, ChartPoint]], finite: Sequence[ChartPoint], labels: list[str]) -> str:
    values = [point.value for point in finite]
    plot = _Plot.of(values, labels)
    root = Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "graphics-document"},
    )
    SubElement(root, "title").text = plain(f"{title}, by release")
    SubElement(root, "desc").text = plain(
        f"{counted(len(finite), 'value')} from {finite[0].label} to {finite[-1].label}, "
        f"lowest {min(values):g}, highest {max(values):g}"
    )
    plot.draw_axes(root)
    for index, line in enumerate(series):
        group = SubElement(root, "g", {"class": f"series color-{index}"})
        drawn = [line.get(label) for label in labels]
        dots = [(x, point) for x, point in enumerate(drawn) if point is not None and math.isfinite(point.value)]
        # Neighbours have the same difference between their place on the axis and their place among the points.
        for _, stroke in groupby(enumerate(dots), key=lambda each: each[1][0] - each[0]):
            places = [f"{plot.x(x):.1f} {plot.y(point.value):.1f}" for _, (x, point) in stroke]
            SubElement(group, "path", {"class": "line", "d": f"M{' L'.join(places)}"})
        for x, point in dots:
            _draw_dot(group, point, f"{point.place}: {title} = {point.value:g} ({point.verdict})", plot, x)
    return tostring(root, encoding="unicode")


def _draw_dot(group: Element, point: ChartPoint, text: str, plot: _Plot, x: int) -> None:
    label = plain(text)
    parent = SubElement(group, "a", {"href": point.href, "aria-label": label}) if point.href else group
    place = {"cx": f"{plot.x(x):.1f}", "cy": f"{plot.y(point.value):.1f}", "r": "5" if point.verdict == "bad" else "4"}
    circle = SubElement(
        parent, "circle", {"class": f"dot {point.verdict}", "role": "graphics-symbol", "aria-label": label, **place}
    )
    SubElement(circle, "title").text = label


@frozen
class _Plot:
    """Where labels and values are in the picture."""

    labels: list[str]
    ticks: tuple[Decimal, ...]
    tick_texts: tuple[str, ...]
    left: float
    bottom: float

    @classmethod
    def of(cls, values: Sequence[float], labels: list[str]) -> _Plot:
        ticks = _ticks(Decimal(min(values)), Decimal(max(values)))
        texts = _texts(ticks)
        longest = max(min(len(label), _LONGEST_LABEL) for label in labels) * _CHARACTER * _SLANT
        left = max(max(map(len, texts)) * _CHARACTER, longest - _MARGIN) + 2 * _MARGIN
        return cls(labels, ticks, texts, left, _HEIGHT - longest - 2.5 * _MARGIN)

    def x(self, index: int) -> float:
        return self.left + (index + 0.5) * (_WIDTH - _MARGIN - self.left) / len(self.labels)

    def y(self, value: float | Decimal) -> float:
        lowest, highest = self.ticks[0], self.ticks[-1]
        return self.bottom - float((Decimal(value) - lowest) / (highest - lowest)) * (self.bottom - _MARGIN)

    def draw_axes(self, root: Element) -> None:
        group = SubElement(root, "g", {"class": "axis y"})
        for tick, text in zip(self.ticks, self.tick_texts, strict=True):
            y = self.y(tick)
            kind = "line" if tick == self.ticks[0] else "guide line"
            SubElement(group, "path", {"class": kind, "d": f"M{self.left:.1f} {y:.1f} H{_WIDTH - _MARGIN}"})
            _draw_text(group, text, x=self.left - 5, y=y + 3.5)
        group = SubElement(root, "g", {"class": "axis x"})
        for index in range(0, len(self.labels), math.ceil(len(self.labels) / _LABELS)):
            x, y = self.x(index) + 3, self.bottom + 1.5 * _MARGIN
            label = plain(self.labels[index])
            text = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
            _draw_text(group, text, x=x, y=y, transform=f"rotate(-45 {x:.1f} {y:.1f})")


def _draw_text(group: Element, text: str, *, x: float, y: float, **attributes: Any) -> None:
    SubElement(group, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", **attributes}).text = text


def _ticks(lowest: Decimal, highest: Decimal) -> tuple[Decimal, ...]:
    """Round values, at equal distances, around both; as decimals, since floats overflow between the largest ones."""
    if lowest == highest:
        room = abs(lowest) / 2 or Decimal(1)
        lowest, highest = lowest - room, highest + room
    unit = Decimal(1).scaleb((highest - lowest).adjusted() - 1)
    step = next(unit * n for n in _STEPS if (highest - lowest) / (unit * n) <= _MOST_STEPS)
    first, last = (lowest / step).to_integral_value(ROUND_FLOOR), (highest / step).to_integral_value(ROUND_CEILING)
    return tuple(step * (first + n) for n in range(int(last - first) + 1))


def _texts(ticks: Sequence[Decimal]) -> tuple[str, ...]:
    """The ticks as short as they differ."""
    for digits in (6, 9, 12, 15):
        texts = tuple(f"{float(tick):.{digits}g}" for tick in ticks)
        if len(set(texts)) == len(ticks) and all(math.isfinite(float(text)) for text in texts):
            return texts
    return tuple(f"{tick.normalize():g}" for tick in ticks)
