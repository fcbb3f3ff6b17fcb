"""The verdicts of a matrix as a table of text."""

from __future__ import annotations

from harness.matrix import verdict_table


def test_a_table_has_the_longest_axis_down_and_the_rest_across(matrix):
    cells = matrix(
        """
        axes.repro = "step"
        axes.packages.torch = ["1.0", "2.0", "3.0"]
        axes.parameters.fast = [true, false]
        [[exclude]]
        packages.torch = "3.0"
        parameters.fast = false
        """
    ).cells
    verdicts = {"step-torch-1.0-fast=true": "good", "step-torch-2.0-fast=false": "bad"}
    assert verdict_table(cells, verdicts).splitlines() == [
        "torch  fast=true  fast=false",
        "1.0    good       -",
        "2.0    -          bad",
        "3.0    -",
    ]


def test_a_table_of_one_axis_has_one_column(matrix):
    cells = matrix('axes.repro = ["one", "another"]').cells
    assert verdict_table(cells, {"one": "skip"}).splitlines() == ["repro    verdict", "one      skip", "another  -"]


def test_a_table_of_one_cell(matrix):
    cells = matrix('axes.repro = "one"').cells
    assert verdict_table(cells, {"one": "good"}).splitlines() == ["repro  verdict", "one    good"]


def test_cells_that_differ_in_what_they_hold_alone_share_a_place(matrix):
    cells = matrix('axes.repro = "one"\n[[include]]\nhold = ["numpy<2"]\nname = "old numpy"').cells
    assert verdict_table(cells, {"one": "good", "old numpy": "bad"}).splitlines()[1] == "one    good/bad"
