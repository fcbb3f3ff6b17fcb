"""The metrics of a matrix over its releases: one line per column."""

from __future__ import annotations

from standing_matrices import SMALL, cell_of, large, run_of, stand

from harness.matrix.running import Standing
from harness.model import Verdict
from harness.report.matrix.charts import plots
from harness.report.matrix.pivot import pivot


def plots_of(standings):
    cells = [standing.cell for standing in standings]
    return plots(pivot(cells), standings, [f"id{n}" for n in range(len(cells))])


def test_metrics_are_drawn_beside_time_and_memory():
    cells = [cell_of(shop=shop, case=case) for shop in ("1.9", "1.10") for case in ("whole", "half")]
    runs = [run_of(cell, Verdict.GOOD, metrics={"loss": float(n)}, peak_memory=2**21) for n, cell in enumerate(cells)]
    (drawn,) = plots_of([Standing(run.cell, run) for run in runs])
    assert [chart.title for chart in drawn.charts] == ["loss", "run, seconds", "peak memory, MiB"]
    assert drawn.charts[0].series == ("case=whole", "case=half")
    losses = [(one.label, one.series, one.value, one.href) for one in drawn.points if one.metric == "loss"]
    assert losses == [
        ("1.9", "case=whole", 0.0, "#id0"),
        ("1.9", "case=half", 1.0, "#id1"),
        ("1.10", "case=whole", 2.0, "#id2"),
        ("1.10", "case=half", 3.0, "#id3"),
    ]
    assert "id3" in drawn.charts[0].svg


def test_a_cell_that_did_not_run_has_no_point():
    (drawn,) = plots_of(SMALL.standings)
    assert [(one.label, one.verdict) for one in drawn.points if one.metric == "duration_s"] == [
        ("1.9", "good"),
        ("1.10", "bad"),
        ("1.10", "bad"),
    ]


def test_a_single_release_has_no_chart():
    assert plots_of(stand("g", [cell_of(shop="1.0")])) == ()
    assert plots_of(stand("??", [cell_of(shop="1.0"), cell_of(shop="1.1")])) == ()


def test_more_lines_than_colours_are_reported():
    cells = [cell_of(shop=f"1.{n}", case=case) for n in range(9) for case in "abcdefgh"]
    (drawn,) = plots_of(stand("g" * 72, cells))
    assert len(drawn.charts[-1].series) == 6
    assert drawn.note == "The first 6 of 8 columns are drawn."


def test_a_matrix_of_several_tables_has_charts_for_each():
    titles = [drawn.title for drawn in plots_of(large(4).standings)]
    assert titles == ["till = 2.0", "till = 3.0"]


def test_nan_and_infinity_are_named():
    runs = [run_of(cell_of(shop=shop), Verdict.GOOD, metrics={"loss": float("nan")}) for shop in ("1.9", "1.10")]
    (drawn,) = plots_of([Standing(run.cell, run) for run in runs])
    assert drawn.charts[0].missing == ("1.9: nan", "1.10: nan")
