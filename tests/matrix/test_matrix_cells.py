"""Axes become cells: the product without exclusions, plus inclusions."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.probe import probe
from harness.errors import BadMatrix
from harness.matrix import Cell, Matrix
from harness.matrix.running import pythons_of


def test_every_choice_of_one_value_per_axis_is_a_cell(matrix):
    """The product follows the order of the axes; the last one changes fastest."""
    cells = matrix(
        """
        hold = ["numpy<2.3"]
        with = ["pytest"]
        [axes]
        repro = "step"
        python = ["3.11", "3.12"]
        device = "cpu"
        as-of = 2025-06-27
        [axes.packages]
        transformers = ["4.52.4", "4.53.0"]
        [axes.parameters]
        lora = false
        """
    ).cells
    assert len(cells) == 4
    assert cells[1] == Cell(
        name="step-py3.11-cpu-as-of-2025-06-27-transformers-4.53.0-lora=false",
        repro="step",
        requirements=("pytest", "transformers==4.53.0"),
        hold=("numpy<2.3",),
        python="3.11",
        device="cpu",
        as_of="2025-06-27",
        params={"lora": False},
    )
    assert [cell.python for cell in cells] == ["3.11", "3.11", "3.12", "3.12"]


def test_everything_but_the_repro_is_optional(matrix):
    """Missing keys are left to `harness probe`."""
    (cell,) = matrix('axes.repro = "step"').cells
    assert cell == Cell(name="step", repro="step")
    assert cell.arguments == ("step", "--hold", "none", "--device", "auto")


def test_as_of_none_means_no_date(matrix):
    (cell,) = matrix('[axes]\nrepro = "step"\nas-of = "none"').cells
    assert cell.as_of is None
    assert cell.name == "step"


def test_a_project_on_an_axis_cannot_be_held_or_required(matrix):
    (cell,) = matrix(
        """
        hold = ["torch==2.13.0", "numpy<2.3"]
        with = ["Torch_X==1.0"]
        [axes]
        repro = "step"
        packages.torch = "2.8.0"
        packages.torch-x = "2.0"
        """
    ).cells
    assert cell.requirements == ("torch==2.8.0", "torch-x==2.0")
    assert cell.hold == ("numpy<2.3",)


def test_an_exclusion_drops_cells_that_match_on_every_named_axis(matrix):
    cells = matrix(
        """
        axes.repro = "step"
        axes.packages.torch = ["1.0", "2.0", "3.0"]
        axes.parameters.fast = [true, false]
        [[exclude]]
        packages.torch = ["1.0", "2.0"]
        parameters.fast = true
        """
    ).cells
    assert [cell.name for cell in cells] == [
        "step-torch-1.0-fast=false",
        "step-torch-2.0-fast=false",
        "step-torch-3.0-fast=true",
        "step-torch-3.0-fast=false",
    ]


def test_an_exclusion_can_name_a_range(matrix):
    """It excludes the versions in the range including pre-releases, however they are spelled."""
    cells = matrix(
        """
        axes.repro = "step"
        axes.packages.torch = ["1.0", "1.5rc1", "2.0", "3.0"]
        [[exclude]]
        packages.torch = [">=1.5rc1,<2", "3.0.0"]
        """
    ).cells
    assert [cell.name for cell in cells] == ["step-torch-1.0", "step-torch-2.0"]


def test_an_unresolved_axis_has_no_cells_yet(matrix):
    """The sentence names the axis, its value and the remedy."""
    asking = matrix('axes.repro = "step"\naxes.packages.torch = ["1.0", "latest"]')
    assert asking.needs_index
    with pytest.raises(BadMatrix, match=r"small: packages.torch = 'latest' must be looked up") as caught:
        _ = asking.cells
    assert "harness matrix FILE --list" in caught.value.hint
    assert not matrix('axes.repro = "step"\naxes.packages.torch = "1.0"').needs_index


def test_an_included_cell_can_need_the_index(matrix):
    assert matrix('axes.repro = "step"\n[[include]]\npackages.torch = "latest <3"').needs_index


def test_era_is_kept_as_a_word(matrix):
    (cell,) = matrix('[axes]\nrepro = "step"\nas-of = "era"\npackages.torch = "1.0"').cells
    assert cell.as_of == "era"
    assert "--as-of era" in " ".join(cell.arguments)
    assert cell.name == "step-as-of-era-torch-1.0"


def test_an_exclusion_distinguishes_true_from_one(refused):
    message = refused('axes.repro = "step"\naxes.parameters.n = [1, 2]\n[[exclude]]\nparameters.n = true')
    assert message == "small: exclude 1 (parameters.n = true) matches no cell"


def test_an_included_cell_inherits_axes_with_one_value(matrix):
    cell = matrix(
        """
        hold = ["numpy<2.3"]
        [axes]
        repro = "step"
        python = "3.11"
        packages.torch = ["1.0", "2.0"]
        [[include]]
        parameters.lora = true
        """
    ).cells[-1]
    assert cell == Cell(
        name="step-py3.11-lora=true",
        repro="step",
        python="3.11",
        hold=("numpy<2.3",),
        params={"lora": True},
    )


@pytest.mark.parametrize(
    ("axis", "include", "pythons"),
    [
        ('"3.12"', "", ["3.12"]),
        ('["3.12"]', 'python = "3.13"', ["3.12", "3.13"]),
        ('["3.12", "3.13"]', "", ["3.12", "3.13", None]),
        ('["3.12", "3.13"]', 'python = "3.12"', ["3.12", "3.13"]),
    ],
)
def test_an_included_cell_without_a_python_takes_the_only_one_of_the_axis(matrix, axis, include, pythons):
    """Beside several, it runs with the harness's own (None). No other Python is opened."""
    read = matrix(f'axes.repro = "step"\naxes.python = {axis}\n[[include]]\nparameters.lora = true\n{include}')
    assert list(dict.fromkeys(cell.python for cell in read.cells)) == pythons
    assert list(pythons_of(read)) == pythons


def test_an_included_cell_without_a_python_runs_with_the_harness_own_where_no_axis_names_one(matrix):
    read = matrix('axes.repro = "step"\n[[include]]\npython = "3.12"\n[[include]]\nparameters.lora = true')
    assert [cell.python for cell in read.cells] == [None, "3.12", None]
    assert pythons_of(read) == (None, "3.12")


def test_a_matrix_can_consist_of_included_cells_only(matrix):
    cells = matrix('[[include]]\nrepro = "a"\n[[include]]\nrepro = "b"').cells
    assert [cell.repro for cell in cells] == ["a", "b"]


def test_exclusions_do_not_affect_included_cells(matrix):
    cells = matrix(
        """
        axes.repro = ["a", "b"]
        [[exclude]]
        repro = "b"
        [[include]]
        repro = "b"
        """
    ).cells
    assert [cell.name for cell in cells] == ["a", "b"]


VERSIONS = st.lists(st.integers(0, 9).map(lambda n: f"1.{n}"), min_size=1, max_size=4, unique=True)


@given(torch=VERSIONS, peft=VERSIONS, flags=st.lists(st.booleans(), min_size=1, max_size=2, unique=True))
def test_a_new_value_renames_no_cell(torch, peft, flags):
    """The name of a cell depends only on its own values, so new values do not change it."""
    axes = {"repro": ("a",), "packages.torch": torch, "packages.peft": peft, "parameters.x": flags}
    small = Matrix("m", {axis: tuple(values) for axis, values in axes.items()})
    large = evolve(small, axes={**small.axes, "packages.torch": (*torch, "2.0")})
    assert len(small.cells) == len(torch) * len(peft) * len(flags)
    assert {cell.name for cell in small.cells} < {cell.name for cell in large.cells}


def test_tags_can_be_selected_by_nox(matrix):
    (cell,) = matrix('axes.repro = "repros/step.py"\naxes.packages.torch = "2.0rc1"\naxes.parameters.x = true').cells
    assert cell.tags == ("repros_step_py", "torch_2_0rc1", "x_true")
    assert all(tag.isidentifier() for tag in cell.tags)


def test_the_arguments_are_those_of_harness_probe(matrix):
    """The command line parses them to the same values."""
    (cell,) = matrix(
        """
        hold = ["numpy<2.3"]
        [axes]
        repro = "step"
        python = "3.11"
        device = "cpu"
        as-of = "2025-06-27"
        packages.torch = "2.8.0"
        parameters.hook = "conv 1"
        parameters.n = 2
        """
    ).cells
    told = probe.make_context("probe", list(cell.arguments)).params
    assert told["repro"] == "step"
    assert told["with_"] == ("torch==2.8.0",)
    assert told["hold"] == ("none", "numpy<2.3")  # none: without the repro's own
    assert (told["python"], told["device"], told["as_of"]) == ("3.11", "cpu", "2025-06-27")
    assert told["params"] == ('hook="conv 1"', "n=2")
