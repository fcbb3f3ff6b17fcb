"""Where each cell of a matrix is placed in its table, and the tables of all views."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from standing_matrices import SMALL, cell_of, large, stand

from harness.matrix import Cell
from harness.matrix.table import (
    axis_name,
    differences,
    labels,
    markdown_table,
    neighbours,
    tables,
)

CELLS = [standing.cell for standing in SMALL.results]
VALUES = st.sampled_from(["1.9", "1.10", "2.0rc1", "2.0", ">=2", "1.10.post1"])


def rows_of(cells):
    return [row for one in tables(cells) for row, _ in one.rows]


def test_releases_are_in_version_order_and_cases_in_file_order():
    cells = [cell_of(shop=shop, case=case) for shop in ("2.0", "1.10", "2.0rc1", "1.9") for case in ("whole", "half")]
    (only,) = tables(cells)
    assert [row for row, _ in only.rows] == ["1.9", "1.10", "2.0rc1", "2.0"]
    assert only.columns == ("case=whole", "case=half")
    assert only.rows[1][1] == (((2, ""),), ((3, ""),))
    assert only.is_timely


def test_pythons_are_in_version_order_and_dates_in_time_order():
    assert rows_of([cell_of(python=python) for python in ("3.10", "3.9", "3.11")]) == ["3.9", "3.10", "3.11"]
    days = [cell_of(as_of=day) for day in ("2025-03-01", "none", "2024-12-01")]
    assert rows_of(days) == ["2024-12-01", "2025-03-01", "none"]


def test_the_longest_axis_becomes_the_rows():
    (only,) = tables(CELLS)
    assert (only.title, only.down, only.columns) == ("", "shop", ("case=whole", "case=half"))
    assert axis_name("packages.shop") == axis_name("parameters.shop") == "shop"


def test_a_single_axis_has_one_column():
    (only,) = tables([cell_of(shop="1.0"), cell_of(shop="1.1")])
    assert (only.columns, only.rows) == (("",), (("1.0", (((0, ""),),)), ("1.1", (((1, ""),),))))
    (alone,) = tables([cell_of(shop="1.0")])
    assert (alone.down, alone.rows, alone.is_timely) == ("repro", (("sale", (((0, ""),),)),), False)


def test_booleans_and_numbers_are_shown_as_in_the_file():
    cells = [Cell(str(value), "sale", choice={"parameters.fast": value}) for value in (True, False, 1)]
    assert rows_of(cells) == ["true", "false", "1"]


def positions_in(maps) -> list[int]:
    return sorted(position for one in maps for _, places in one.rows for place in places for position, _ in place)


@given(
    st.lists(
        st.tuples(VALUES, VALUES, st.sampled_from(["a", "b", ""]), st.sampled_from(["3.11", "3.12", ""])),
        min_size=1,
        max_size=12,
    ),
    st.data(),
)
def test_every_cell_has_one_place(choices, data):
    """Whatever the values, no cell is lost or shown twice, and a subset of the cells keeps its places."""
    cells = [
        cell_of(shop=shop, till=till, **({"case": case} if case else {}), **({"python": python} if python else {}))
        for shop, till, case, python in choices
    ]
    maps = tables(cells)
    assert positions_in(maps) == list(range(len(cells)))
    assert all(len(places) == len(one.columns) for one in maps for _, places in one.rows)
    some = data.draw(st.sets(st.sampled_from(range(len(cells))), min_size=1))
    assert positions_in(tables(cells, some)) == sorted(some)
    named = {(one.title, one.down, column) for one in maps for column in one.columns}
    assert {(one.title, one.down, column) for one in tables(cells, some) for column in one.columns} <= named


def test_cells_in_one_place_are_distinguished_by_their_commands():
    plain = cell_of(shop="1.0")
    held = evolve(plain, hold=("coin<2",), name="old coin")
    (only,) = tables([plain, held])
    assert only.rows == (("sale", (((0, ""), (1, "coin<2")),)),)
    assert differences([plain]) == ("",)


def test_a_cell_is_labelled_by_what_varies_or_by_its_name():
    assert labels(CELLS)[:2] == ("shop 1.9, case=whole", "shop 1.10, case=whole")
    plain = cell_of(shop="1.0")
    assert labels([plain, evolve(plain, name="old coin")]) == (plain.name, "old coin")


def test_each_combination_of_the_other_axes_has_a_table():
    maps = tables([standing.cell for standing in large(20).results])
    assert [(one.title, one.columns) for one in maps] == [
        (f"till = {till}, case = {case}", ("python=3.10", "python=3.11", "python=3.12"))
        for till in ("2.0", "3.0")
        for case in ("whole", "half")
    ]
    assert positions_in(maps) == list(range(240))


def test_a_missing_value_is_named():
    cells = [cell_of(shop=s, till=t, **case) for s in "123" for t in "78" for case in ({"case": "a"}, {})]
    assert [one.title for one in tables(cells)] == ["case = a", "without case"]
    (only,) = tables([cell_of(shop=s, **case) for s in "123" for case in ({"case": "a"}, {})])
    assert only.columns == ("case=a", "case=-")


def test_a_subset_of_cells_keeps_its_places():
    (only,) = tables(CELLS, [1, 2])
    assert (only.down, only.columns) == ("shop", ("case=whole", "case=half"))
    assert only.rows == (("1.10", (((1, ""),), ((2, ""),))),)
    assert tables(CELLS, range(len(CELLS))) == tables(CELLS)


def test_every_cell_is_in_its_place():
    (only,) = tables(CELLS)
    words = [
        (text, [[SMALL.results[position].word for position, _ in place] for place in places])
        for text, places in only.rows
    ]
    assert words == [("1.9", [["good"], []]), ("1.10", [["bad"], ["bad"]]), ("1.11", [["skip"], ["not run"]])]


def test_neighbours_differ_only_in_the_row_axis():
    assert neighbours(tables(CELLS)) == {0: (), 1: (0,), 2: (), 3: (0, 1), 4: (2,)}


def test_a_cell_that_could_not_be_judged_is_told_with_its_reason():
    cells = [cell_of(shop=version) for version in ("1.0", "1.1", "1.2")]
    text = markdown_table(stand("gss", cells), {cell.name for cell in cells}, "harness matrix till.toml")
    assert "| 1.1 | ? |" in text
    assert "?: it could not be judged: `nothing fits`\n" in text
