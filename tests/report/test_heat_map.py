"""Heat maps: levels of headings, a chip for each cell, neighbours."""

from __future__ import annotations

from attrs import evolve
from standing_matrices import SMALL, cell_of, large, stand

from harness.report.matrix.content import Head
from harness.report.matrix.heat_map import heat_maps, neighbours
from harness.report.matrix.pivot import labels, pivot


def maps_of(standings):
    cells = [standing.cell for standing in standings]
    return heat_maps(pivot(cells), standings, [f"id{n}" for n in range(len(cells))], labels(cells))


def test_every_cell_has_a_labelled_chip_in_its_place():
    (only,) = maps_of(SMALL.standings)
    assert (only.down, only.heads) == ("shop", (("case", (Head("whole"), Head("half"))),))
    words = [(row.text, [[chip.word for chip in place] for place in row.places]) for row in only.rows]
    assert words == [("1.9", [["good"], []]), ("1.10", [["bad"], ["bad"]]), ("1.11", [["skip"], ["not run"]])]
    assert only.rows[1].places[0][0].title == "shop 1.10, case=whole: bad, ValueError: no price"
    assert only.rows[2].places[1][0].state == "not-run"


def test_equal_adjacent_headings_are_merged():
    cells = [cell_of(shop=s, till=t, case=c) for s in ("1", "2", "3") for t in ("7", "8") for c in ("a", "b")]
    (only,) = maps_of(stand("g" * 12, cells))
    assert only.heads == (
        ("till", (Head("7", 2), Head("8", 2))),
        ("case", (Head("a"), Head("b"), Head("a"), Head("b"))),
    )


def test_a_wide_matrix_is_split_without_losing_cells():
    maps = maps_of(large(20).standings)
    assert [one.title for one in maps] == ["till = 2.0", "till = 3.0"]
    ids = [chip.id for one in maps for row in one.rows for place in row.places for chip in place]
    assert sorted(ids) == sorted(f"id{n}" for n in range(240))


def test_cells_in_one_place_are_distinguished():
    plain = cell_of(shop="1.0")
    (only,) = maps_of(stand("gb", [plain, evolve(plain, hold=("coin<2",), name="old coin")]))
    assert [(chip.word, chip.apart) for chip in only.rows[0].places[0]] == [("good", ""), ("bad", "coin<2")]


def test_neighbours_differ_only_in_the_row_axis():
    laid = pivot([standing.cell for standing in SMALL.standings])
    assert neighbours(laid) == {0: (), 1: (0,), 2: (), 3: (0, 1), 4: (2,)}
