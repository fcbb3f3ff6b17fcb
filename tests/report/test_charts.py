"""Charts: every value is a labelled point, gaps stay gaps, and nothing is loaded from elsewhere."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from decimal import Decimal

import pytest

from harness.report.charts import ChartPoint, metric_charts

SVG = "{http://www.w3.org/2000/svg}"


def points(*values, metric="loss", series="", verdict="good"):
    """One point for each value that is not None, over releases 1.0, 1.1, ..."""
    return [
        ChartPoint(metric, f"1.{i}", value, verdict, series, href=f"#run-1.{i}")
        for i, value in enumerate(values)
        if value is not None
    ]


def drawn(chart):
    return ET.fromstring(chart.svg)


def labels(root):
    axis = next(group for group in root.iter(f"{SVG}g") if group.get("class", "").startswith("axis x"))
    return [text.text for text in axis.iter(f"{SVG}text")]


def test_each_metric_has_a_chart():
    charts = metric_charts([*points(1.0, 2.0), *points(3.0, metric="duration_s")])
    assert [chart.title for chart in charts] == ["loss", "run, seconds"]


def test_a_point_has_its_verdict_a_tooltip_and_a_link():
    (chart,) = metric_charts([*points(1.0), ChartPoint("loss", "1.1", 2.5, "bad", href="#run-1.1")])
    dots = list(drawn(chart).iter(f"{SVG}circle"))
    assert [dot.get("class") for dot in dots] == ["dot good", "dot bad"]
    assert [dot.find(f"{SVG}title").text for dot in dots] == ["1.0: loss = 1 (good)", "1.1: loss = 2.5 (bad)"]
    links = [link.get("href") for link in drawn(chart).iter(f"{SVG}a")]
    assert links == ["#run-1.0", "#run-1.1"]
    assert "_blank" not in chart.svg


def test_charts_share_releases_and_a_missing_value_breaks_the_line():
    loss, seconds = metric_charts([*points(1, 2, 3, 4, 5, metric="duration_s"), *points(1, 2, None, 4, 5)])[::-1]
    assert labels(drawn(loss)) == labels(drawn(seconds)) == ["1.0", "1.1", "1.2", "1.3", "1.4"]

    def strokes(chart):
        return len(drawn(chart).findall(f"{SVG}g/{SVG}path[@class='line']")) - 1  # without that of the axis

    assert (strokes(seconds), strokes(loss)) == (1, 2)


@pytest.mark.parametrize(
    "values", [(1.0,), (0.0, -0.0), (1.7e308, -1.7e308), (5e-324, 0.0), (1e16, 1e16 + 2), (-3.0, 1e300), (41.9, 42.1)]
)
def test_all_values_are_drawn_between_labels_that_differ(values):
    (chart,) = metric_charts(points(*values))
    (axis,) = [group for group in drawn(chart).iter(f"{SVG}g") if group.get("class") == "axis y"]
    marks = [(Decimal(text.text), float(text.get("y"))) for text in axis.iter(f"{SVG}text")]
    assert 2 <= len(dict(marks)) == len(marks) <= 7
    assert marks[0][0] <= min(values)
    assert max(values) <= marks[-1][0]
    for circle in drawn(chart).iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cy")) <= marks[0][1]
        assert 0 < float(circle.get("cx")) < 520


def test_a_chart_says_in_words_what_it_shows():
    (chart,) = metric_charts(points(1.0, 2.5))
    words = [drawn(chart).find(f"{SVG}{name}").text for name in ("title", "desc")]
    assert words == ["loss, by release", "2 values from 1.0 to 1.1, lowest 1, highest 2.5"]


def test_each_series_is_a_line():
    (chart,) = metric_charts([*points(1.0, 2.0, series="3.11"), *points(3.0, None, series="3.12")])
    assert chart.series == ("3.11", "3.12")
    told = [dot.get("aria-label") for dot in drawn(chart).iter(f"{SVG}circle")]
    assert told == ["1.0, 3.11: loss = 1 (good)", "1.1, 3.11: loss = 2 (good)", "1.0, 3.12: loss = 3 (good)"]
    assert {"color-0", "color-1"} <= {word for g in drawn(chart).iter(f"{SVG}g") for word in g.get("class", "").split()}


def test_nan_and_infinity_are_named_and_not_drawn():
    (chart,) = metric_charts(points(1.0, math.nan, math.inf))
    assert len(list(drawn(chart).iter(f"{SVG}circle"))) == 1
    assert chart.missing == ("1.1: nan", "1.2: inf")
    (empty,) = metric_charts(points(math.nan))
    assert (empty.svg, empty.missing) == ("", ("1.0: nan",))


def test_only_some_of_many_releases_are_labelled():
    (chart,) = metric_charts(points(*map(float, range(60))))
    assert 10 <= len(labels(drawn(chart))) <= 20
    assert len(list(drawn(chart).iter(f"{SVG}circle"))) == 60


def test_a_chart_is_self_contained_and_reproducible():
    (chart,) = metric_charts(points(1.0, 2.0))
    assert [e.tag for e in drawn(chart).iter() if e.tag in (f"{SVG}script", f"{SVG}style", f"{SVG}image")] == []
    outside = chart.svg.replace("http://www.w3.org/", "")
    assert "//" not in outside
    assert "<!--" not in chart.svg
    assert metric_charts(points(1.0, 2.0)) == (chart,)


def test_a_hostile_name_stays_text():
    (chart,) = metric_charts(points(1.0, metric="</svg><script>throw 1</script>"))
    assert "<script" not in chart.svg
