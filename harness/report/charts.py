"""Charts of metrics over releases: inline SVG with the page's colours and no external resources."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from xml.etree.ElementTree import Element

_WIDTH, _HEIGHT = 520, 250
_LABELS = 18  # more don't fit
_RADIUS = {"bad": 5}
_TITLES = {"duration_s": "run, seconds", "peak_memory_mib": "peak memory, MiB"}
# Remove scripts, fixed colours and tooltips that need a script.
_DROPPED = {"script", "style", "desc", "title"}


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
    return tuple(_chart(metric, found, labels) for metric, found in by_metric.items())


def _chart(metric: str, points: list[ChartPoint], labels: list[str]) -> Chart:
    import pygal  # type: ignore[import-untyped]  # imported here because it is slow

    title = _TITLES.get(metric, metric)
    series: dict[str, dict[str, ChartPoint]] = {}
    for point in points:
        series.setdefault(point.series, {})[point.label] = point
    drawn = pygal.Line(
        width=_WIDTH,
        height=_HEIGHT,
        margin=8,
        js=(),
        show_legend=False,
        allow_interruptions=True,
        x_label_rotation=45,
        x_labels_major_every=math.ceil(len(labels) / _LABELS),
        show_minor_x_labels=False,
        max_scale=6,
        formatter=lambda value: f"{value:g}",
        disable_xml_declaration=True,
    )
    drawn.x_labels = labels
    for name, found in series.items():
        drawn.add(name, [_dot(title, found.get(label)) for label in labels])
    drawn.add_xml_filter(lambda root: _for_a_page(root, title))
    return Chart(
        title=title,
        svg=drawn.render(is_unicode=True).strip() if any(math.isfinite(point.value) for point in points) else "",
        series=tuple(series),
        missing=tuple(
            f"{_place(point)}: {point.value}"
            for found in series.values()
            for point in found.values()
            if not math.isfinite(point.value)
        ),
    )


def _dot(title: str, point: ChartPoint | None) -> Mapping[str, Any] | None:
    if point is None or not math.isfinite(point.value):
        return None
    told = f"{_place(point)}: {title} = {point.value:g} ({point.verdict})"
    node = {"class": f"dot {point.verdict}", "r": _RADIUS.get(point.verdict, 4), "aria-label": told}
    return {"value": point.value, "node": node, **({"xlink": point.href} if point.href else {})}


def _place(point: ChartPoint) -> str:
    return f"{point.label}, {point.series}" if point.series else point.label


def _for_a_page(root: Element, title: str) -> Element:
    """Prepare the SVG for a page: no duplicate or external parts, and a tooltip without scripts on each point."""
    root.attrib.pop("id", None)
    root.set("role", "img")
    root.set("aria-label", f"{title}, by release")
    for parent in list(root.iter()):
        for child in list(parent):
            is_comment = not isinstance(child.tag, str)
            if is_comment or child.tag in _DROPPED or "tooltip" in child.get("class", ""):
                parent.remove(child)
        if parent.tag == "a":
            parent.attrib.pop("target", None)
        if parent.tag == "circle":
            tooltip = parent.makeelement("title", {})
            tooltip.text = parent.get("aria-label", "")
            parent.append(tooltip)
    return root
