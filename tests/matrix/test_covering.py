"""A pairwise subset keeps every pair of values that occurs in some cell, and every included cell."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, reject
from hypothesis import strategies as st

from harness.errors import BadMatrix
from harness.matrix import Matrix
from harness.matrix.cells import Inclusion
from harness.matrix.reading import pairwise

AXES = ("repro", "packages.a", "packages.b", "parameters.c")


def value_of(axis: str, number: int):
    return f"{number}.0" if axis.startswith("packages.") else f"v{number}"


@st.composite
def matrices(draw) -> Matrix:
    """Up to four axes, exclusions of some pairs and triples, and included cells."""
    axes = {axis: tuple(value_of(axis, n) for n in range(draw(st.integers(1, 4)))) for axis in AXES}
    product = list(itertools.product(*axes.values()))
    doomed = draw(st.lists(st.sampled_from(product), max_size=6, unique=True))
    exclude = []
    for row in doomed:
        named = draw(st.lists(st.sampled_from(AXES), min_size=2, unique=True))
        exclude.append({axis: (value,) for axis, value in zip(AXES, row, strict=True) if axis in named})
    number = draw(st.integers(0, 2))
    include = [Inclusion({"repro": "extra", "parameters.c": f"e{n}"}, name=f"extra {n}") for n in range(number)]
    if not any(all(v in e[a] for a, v in zip(AXES, product[-1], strict=True) if a in e) for e in exclude):
        include.append(Inclusion(dict(zip(AXES, product[-1], strict=True)), name="again", with_=("pytest",)))
    return Matrix("m", axes, exclude=tuple(exclude), include=tuple(include))


def pairs(cells) -> set:
    """Pairs of values, and of a value and an axis missing from its cell."""
    axes = sorted({axis for cell in cells for axis in cell.choice})
    return {
        pair
        for cell in cells
        for pair in itertools.combinations([(axis, json.dumps(cell.choice.get(axis))) for axis in axes], 2)
    }


@given(matrices())
def test_every_occurring_pair_is_in_a_kept_cell(matrix):
    try:
        cells = matrix.cells
    except BadMatrix:  # the exclusions left nothing
        reject()
    chosen = pairwise(cells)
    assert pairs(chosen.cells) == pairs(cells)
    assert [cell for cell in cells if cell.included] == [cell for cell in chosen.cells if cell.included]
    assert sorted(cell.name for cell in (*chosen.cells, *chosen.left_out)) == sorted(cell.name for cell in cells)
    assert pairwise(cells) == chosen


def test_pairs_need_far_fewer_cells_than_the_product():
    """4 x 4 values of any two axes need 16 cells at least; the product has 256."""
    axes = {axis: tuple(value_of(axis, n) for n in range(4)) for axis in AXES}
    chosen = pairwise(Matrix("m", axes).cells)
    assert 16 <= len(chosen.cells) <= 28
    assert len(chosen.cells) + len(chosen.left_out) == 256
    assert chosen.pairs == 6 * 16


def test_pairs_made_rare_by_exclusions_are_covered():
    """Of three axes with two values only the cells with an even sum exist: each pair needs its own cell."""
    axes = {"repro": ("v0", "v1"), "packages.a": ("0.0", "1.0"), "parameters.c": ("v0", "v1")}
    odd = ["001", "010", "100", "111"]
    exclude = [{"repro": (f"v{r}",), "packages.a": (f"{a}.0",), "parameters.c": (f"v{c}",)} for r, a, c in odd]
    chosen = pairwise(Matrix("m", axes, exclude=tuple(exclude)).cells)
    assert (len(chosen.cells), chosen.pairs) == (4, 12)


def test_an_axis_of_only_an_included_cell_removes_no_value():
    """No cell of the product has a pair with it, and it is still kept."""
    include = (Inclusion({"repro": "step", "packages.a": "1.0", "parameters.c": "v1"}),)
    cells = Matrix("m", {"repro": ("step",), "packages.a": ("1.0", "2.0", "3.0")}, include=include).cells
    assert pairwise(cells).cells == cells


def test_with_one_axis_every_cell_is_kept():
    cells = Matrix("m", {"repro": ("step",), "packages.a": ("1.0", "2.0", "3.0")}).cells
    assert pairwise(cells).cells == cells
