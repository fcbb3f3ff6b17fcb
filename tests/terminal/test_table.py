"""The verdicts of a matrix as lines of text."""

from __future__ import annotations

import io
import re

from rich.console import Console

from harness.matrix import Cell
from harness.matrix.running import CellResult
from harness.terminal import print_table


def cell(name: str, hold: tuple[str, ...] = (), **choice: str) -> CellResult:
    axes = {"shop": "packages.shop", "till": "packages.till", "case": "parameters.case"}
    chosen = {"repro": "sale", **{axes.get(axis, axis): value for axis, value in choice.items()}}
    return CellResult(Cell(name, "sale", hold=hold, choice=chosen), blocked="why" if name.startswith("skip") else "")


def lines(*standings: CellResult, **console) -> list[str]:
    out = io.StringIO()
    print_table(Console(file=out, **{"width": 30, **console}), standings)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_releases_are_rows_and_the_rest_columns():
    told = lines(
        cell("a", shop="1.10", case="whole"),
        cell("skipped", shop="1.9", case="half"),
        cell("b", shop="2.0", case="half"),
    )
    assert told == ["shop  case=whole  case=half", "1.9               skipped", "1.10  -", "2.0               -"]


def test_one_axis_has_one_column():
    assert lines(cell("a", shop="1.9"), cell("skipped", shop="1.10")) == ["shop  verdict", "1.9   -", "1.10  skipped"]


def test_each_value_of_a_third_axis_has_a_table():
    told = lines(*(cell(f"{s}{t}{c}", shop=s, till=t, case=c) for s in "123" for t in "78" for c in "ab"), width=90)
    assert [line for line in told if "=" in line and "till" not in line] == ["case = a", "case = b"]
    assert re.split(" {2,}", told[2]) == ["shop", "till=7", "till=8"]


def test_cells_in_one_place_are_distinguished():
    assert lines(cell("skipped", shop="1"), cell("old coin", ("coin<2",), shop="1")) == [
        "repro  verdict",
        "sale   skipped, - (coin<2)",
    ]


def test_a_log_is_not_cut_to_a_width():
    """Without a terminal, words are not cut to a width."""
    told = lines(*(cell(f"{s}{c}", shop=s, case=c * 20) for s in "12345" for c in "abcd"))
    assert len(told) == 6
    assert told[0].count("case=") == 4
