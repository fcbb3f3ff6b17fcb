"""Which cells of a matrix run."""

from __future__ import annotations

from harness.matrix import LeftOut, Matrix
from harness.matrix.reading import choose

MATRIX = Matrix(
    "tiny",
    {"repro": ("step",), "packages.shop": ("1.0", "2.0"), "parameters.a": (1, 2, 3), "parameters.b": (1, 2, 3)},
    left_out=(LeftOut("shop", "1.5", "yanked"),),
)


def test_all_cells_are_selected_without_keywords():
    assert choose(MATRIX).cells == MATRIX.cells
    chosen = choose(MATRIX, "shop_2_0 and a_3")
    assert chosen.names == {cell.name for cell in chosen.cells}
    assert [cell.choice["parameters.b"] for cell in chosen.cells] == [1, 2, 3]
    assert chosen.left_out == (("shop 1.5", "yanked"),)


def test_the_list_has_commands_and_excluded_releases():
    listed = choose(MATRIX).as_json()
    assert listed["left_out"] == [{"project": "shop", "version": "1.5", "reason": "yanked"}]
    assert listed["cells"][0]["arguments"][0] == "step"
    assert listed["cells"][0]["python"] is None
