"""Where each cell of a matrix is placed in its table, and the tables of all views."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from standing_matrices import SMALL, cell_of, large, stand

from harness.matrix import Cell
from harness.report.matrix_table import (
    axis_name,
    differences,
    labels,
    markdown_table,
    neighbours,
    parts,
    pivot,
    tables,
)

CELLS = [standing.cell for standing in SMALL.standings]
VALUES = st.sampled_from(["1.9", "1.10", "2.0rc1", "2.0", ">=2", "1.10.post1"])


def test_releases_are_in_version_order_and_cases_in_file_order():
    cells = [cell_of(shop=shop, case=case) for shop in ("2.0", "1.10", "2.0rc1", "1.9") for case in ("whole", "half")]
    laid = pivot(cells)
    assert laid.rows == ("1.9", "1.10", "2.0rc1", "2.0")
    assert laid.columns == (("whole",), ("half",))
    assert laid.places["1.10", ("half",)] == (3,)


def test_pythons_are_in_version_order_and_dates_in_time_order():
    pythons = [cell_of(python=python) for python in ("3.10", "3.9", "3.11")]
    assert pivot(pythons).rows == ("3.9", "3.10", "3.11")
    days = [cell_of(as_of=day) for day in ("2025-03-01", "none", "2024-12-01")]
    assert pivot(days).rows == ("2024-12-01", "2025-03-01", "none")


def test_the_longest_axis_becomes_the_rows():
    assert (pivot(CELLS).down, pivot(CELLS).across) == ("packages.shop", ("parameters.case",))
    assert axis_name("packages.shop") == axis_name("parameters.shop") == "shop"


def test_a_single_axis_has_one_column():
    laid = pivot([cell_of(shop="1.0"), cell_of(shop="1.1")])
    assert (laid.columns, laid.places) == (((),), {("1.0", ()): (0,), ("1.1", ()): (1,)})
    alone = pivot([cell_of(shop="1.0")])
    assert (alone.down, alone.rows, alone.places) == ("repro", ("sale",), {("sale", ()): (0,)})


def test_booleans_and_numbers_are_shown_as_in_the_file():
    cells = [Cell(str(value), "sale", choice={"parameters.fast": value}) for value in (True, False, 1)]
    assert pivot(cells).rows == ("true", "false", "1")


@given(st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["a", "b", ""])), min_size=1, max_size=12))
def test_every_cell_has_one_place(choices):
    """Whatever the values, no cell is lost or shown twice, in the whole and in its parts."""
    cells = [cell_of(shop=shop, till=till, **({"case": case} if case else {})) for shop, till, case in choices]
    laid = pivot(cells)
    assert sorted(i for place in laid.places.values() for i in place) == list(range(len(cells)))
    assert all(row in laid.rows and column in laid.columns for row, column in laid.places)
    assert sorted(i for _, part in parts(laid) for place in part.places.values() for i in place) == list(
        range(len(cells))
    )


def test_cells_in_one_place_are_distinguished_by_their_commands():
    plain = cell_of(shop="1.0")
    held = evolve(plain, hold=("coin<2",), name="old coin")
    assert pivot([plain, held]).places == {("sale", ()): (0, 1)}
    assert differences([plain, held]) == ("", "coin<2")
    assert differences([plain]) == ("",)


def test_a_cell_is_labelled_by_what_varies_or_by_its_name():
    assert labels(CELLS)[:2] == ("shop 1.9, case=whole", "shop 1.10, case=whole")
    plain = cell_of(shop="1.0")
    assert labels([plain, evolve(plain, name="old coin")]) == (plain.name, "old coin")


def test_too_many_columns_become_several_tables():
    laid = pivot([standing.cell for standing in large(20).standings])
    assert [(title, len(part.columns), part.across) for title, part in parts(laid)] == [
        ("till = 2.0", 6, ("python", "parameters.case")),
        ("till = 3.0", 6, ("python", "parameters.case")),
    ]
    assert parts(pivot(CELLS)) == [("", pivot(CELLS))]


def test_a_subset_of_cells_keeps_its_places():
    laid = pivot(CELLS).of([1, 2])
    assert (laid.down, laid.rows, laid.columns) == ("packages.shop", ("1.10",), (("whole",), ("half",)))
    assert laid.places == {("1.10", ("whole",)): (1,), ("1.10", ("half",)): (2,)}
    assert pivot(CELLS).of(range(len(CELLS))) == pivot(CELLS)


def maps_of(standings):
    return tables([standing.cell for standing in standings])


def test_every_cell_is_in_its_place():
    (only,) = maps_of(SMALL.standings)
    assert (only.down, only.heads) == ("shop", (("case", (("whole", 1), ("half", 1))),))
    words = [
        (text, [[SMALL.standings[position].word for position, _ in place] for place in places])
        for text, places in only.rows
    ]
    assert words == [("1.9", [["good"], []]), ("1.10", [["bad"], ["bad"]]), ("1.11", [["skip"], ["not run"]])]


def test_equal_adjacent_headings_are_merged():
    cells = [cell_of(shop=s, till=t, case=c) for s in ("1", "2", "3") for t in ("7", "8") for c in ("a", "b")]
    (only,) = maps_of(stand("g" * 12, cells))
    assert only.heads == (
        ("till", (("7", 2), ("8", 2))),
        ("case", (("a", 1), ("b", 1), ("a", 1), ("b", 1))),
    )


def test_a_wide_matrix_is_split_without_losing_cells():
    maps = maps_of(large(20).standings)
    assert [one.title for one in maps] == ["till = 2.0", "till = 3.0"]
    positions = [position for one in maps for _, places in one.rows for place in places for position, _ in place]
    assert sorted(positions) == list(range(240))


def test_cells_in_one_place_are_distinguished():
    plain = cell_of(shop="1.0")
    (only,) = maps_of(stand("gb", [plain, evolve(plain, hold=("coin<2",), name="old coin")]))
    assert only.rows[0][1][0] == ((0, ""), (1, "coin<2"))


def test_neighbours_differ_only_in_the_row_axis():
    laid = pivot([standing.cell for standing in SMALL.standings])
    assert neighbours(laid) == {0: (), 1: (0,), 2: (), 3: (0, 1), 4: (2,)}


def test_a_cell_that_could_not_be_judged_is_told_with_its_reason():
    cells = [cell_of(shop=version) for version in ("1.0", "1.1", "1.2")]
    text = markdown_table(stand("gss", cells), {cell.name for cell in cells}, "harness matrix till.toml")
    assert "| 1.1 | ? |" in text
    assert "?: it could not be judged: `nothing fits`\n" in text
