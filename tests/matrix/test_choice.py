"""Which cells of a matrix run."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserMistake
from harness.matrix import LeftOut, Matrix
from harness.matrix.reading import choose

MATRIX = Matrix(
    "tiny",
    {"repro": ("step",), "packages.shop": ("1.0", "2.0"), "parameters.a": (1, 2, 3), "parameters.b": (1, 2, 3)},
    left_out=(LeftOut("shop", "1.5", "yanked"),),
)


def test_all_cells_are_selected_without_values():
    assert choose(MATRIX).cells == MATRIX.cells
    chosen = choose(MATRIX, ["packages.shop=2.0", "parameters.a=3"])
    assert chosen.names == {cell.name for cell in chosen.cells}
    assert [cell.choice["parameters.b"] for cell in chosen.cells] == [1, 2, 3]
    assert chosen.left_out == (("shop 1.5", "yanked"),)


@pytest.mark.parametrize(
    ("text", "values"),
    [("shop=2.0", ["2.0"]), ("shop=2", ["2.0"]), ("shop=1.0,2.0", ["1.0", "2.0"])],
)
def test_a_package_may_be_named_alone_and_its_version_in_another_spelling(text, values):
    assert list(dict.fromkeys(cell.choice["packages.shop"] for cell in choose(MATRIX, [text]).cells)) == values


def test_values_that_no_cell_has_together_are_refused():
    with pytest.raises(UserMistake, match=r"none of the 18 cells has parameters.a=1 and parameters.a=2"):
        choose(MATRIX, ["a=1", "a=2"])


def test_a_name_that_two_axes_have_needs_its_table():
    read = Matrix("read", {"repro": ("step",), "packages.shop": ("1", "2"), "made.shop": ("1", "2")})
    assert [cell.made for cell in choose(read, ["made.shop=1", "packages.shop=2"]).cells] == [("shop==1",)]
    with pytest.raises(UserMistake, match="several axes named shop") as caught:
        choose(read, ["shop=1"])
    assert caught.value.hint == "axes: packages.shop, made.shop"


@given(
    st.text(alphabet="abshop.,=123 -", max_size=12)
    | st.builds("{}={}".format, st.sampled_from(["a", "b", "shop"]), st.lists(st.sampled_from("123")).map(",".join))
)
def test_any_text_selects_cells_or_is_refused(text):
    with contextlib.suppress(UserMistake):
        chosen = choose(MATRIX, [text]).cells
        assert chosen
        assert all(cell in MATRIX.cells for cell in chosen)
