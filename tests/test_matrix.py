"""A matrix file becomes cells, or one sentence that says what to mend."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.probe import probe
from harness.errors import BadMatrix
from harness.investigation.repros import find_repro
from harness.matrix import Cell, Matrix, read_matrix, verdict_table

ROOT = Path(__file__).parent.parent


@pytest.fixture
def matrix(tmp_path: Path):
    """A matrix out of the text of its file."""

    def read(text: str) -> Matrix:
        path = tmp_path / "small.toml"
        path.write_text(text, encoding="utf-8")
        return read_matrix(path)

    return read


def refused(matrix, text: str) -> str:
    with pytest.raises(BadMatrix) as caught:
        _ = matrix(text).cells
    assert "\n" not in caught.value.message
    return caught.value.message


def test_every_choice_of_one_value_per_axis_is_a_cell(matrix):
    """The product is in the order of the axes, the last one fastest."""
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
        transformers = ["4.52.4", ">=4.53,<4.54"]
        [axes.parameters]
        lora = false
        """
    ).cells
    assert len(cells) == 4
    assert cells[1] == Cell(
        name="step-py3.11-cpu-as-of-2025-06-27-transformers->=4.53,<4.54-lora=false",
        repro="step",
        requirements=("pytest", "transformers>=4.53,<4.54"),
        hold=("numpy<2.3",),
        python="3.11",
        device="cpu",
        as_of="2025-06-27",
        params={"lora": False},
    )
    assert [cell.python for cell in cells] == ["3.11", "3.11", "3.12", "3.12"]


def test_all_but_the_repro_may_be_left_out(matrix):
    """What is not said is left to `harness probe`."""
    (cell,) = matrix('axes.repro = "step"').cells
    assert cell == Cell(name="step", repro="step")
    assert cell.arguments == ("step", "--device", "auto")


def test_as_of_none_is_no_date(matrix):
    (cell,) = matrix('[axes]\nrepro = "step"\nas-of = "none"').cells
    assert cell.as_of is None
    assert cell.name == "step"


def test_a_project_that_is_an_axis_is_neither_held_nor_required_otherwise(matrix):
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


def test_an_exclusion_leaves_out_the_cells_that_match_in_every_axis_it_names(matrix):
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


def test_an_exclusion_tells_true_from_one(matrix):
    message = refused(matrix, 'axes.repro = "step"\naxes.parameters.n = [1, 2]\n[[exclude]]\nparameters.n = true')
    assert message == "small: exclude 1 (parameters.n = true) matches no cell"


def test_an_included_cell_takes_what_it_does_not_name_from_axes_with_one_value(matrix):
    cell = matrix(
        """
        hold = ["numpy<2.3"]
        [axes]
        repro = "step"
        python = "3.11"
        packages.torch = ["1.0", "2.0"]
        [[include]]
        parameters.lora = true
        hold = ["numpy<2"]
        with = ["pytest"]
        name = "the odd one"
        """
    ).cells[-1]
    assert cell == Cell(
        name="the odd one",
        repro="step",
        python="3.11",
        requirements=("pytest",),
        hold=("numpy<2",),
        params={"lora": True},
    )


def test_a_matrix_may_be_made_of_included_cells_alone(matrix):
    cells = matrix('[[include]]\nrepro = "a"\n[[include]]\nrepro = "b"').cells
    assert [cell.repro for cell in cells] == ["a", "b"]


def test_exclusions_leave_included_cells_alone(matrix):
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("axes = [", "is not valid TOML"),
        ("", "axes.repro must name a repro"),
        ("axes = 3", "axes must be a table"),
        ('axes.repro = "a"\nrows = 1', "unknown key rows; known are axes, hold, with, include, exclude"),
        ('axes.repro = "a"\naxes.pythons = "3.11"', "unknown key axes.pythons"),
        ("axes.repro = []", "axes.repro has no values"),
        ('axes.repro = ["a", "a"]', "axes.repro has 'a' twice"),
        ('axes.repro = ""', "must be a string in quotes"),
        ('axes.repro = "a"\naxes.python = 3.10', "axes.python: 3.1 must be a string in quotes"),
        ('axes.repro = "a"\naxes.python = "python3"', "is not a version of Python"),
        ('axes.repro = "a"\naxes.device = "tpu"', "is not a device; there are auto, cpu, cuda, emulated"),
        ('axes.repro = "a"\naxes.as-of = "era"', "is neither a date such as 2025-06-27 nor none"),
        ('axes.repro = "a"\naxes.packages = "torch"', "axes.packages must be a table"),
        ('axes.repro = "a"\naxes.packages.torch = "new"', "is neither a version such as 4.53.0 nor a range"),
        ('axes.repro = "a"\naxes.packages.torch = "1.0 or so"', "is neither a version"),
        ('axes.repro = "a"\naxes.parameters.x = [[1]]', "a parameter is a string, a number"),
        ('hold = "numpy<2"\naxes.repro = "a"', "hold must be a list of requirements"),
        ('hold = ["numpy 2"]\naxes.repro = "a"', "hold: 'numpy 2' is not a requirement"),
        ('with = [3]\naxes.repro = "a"', "with: 3 is not a requirement"),
        ('axes.repro = "a"\n[include]\nrepro = "b"', "include must be a list of tables: [[include]]"),
        ('axes.repro = "a"\n[[include]]\nrepro = ["b", "c"]', "include 1.repro must be one value"),
        ('axes.repro = "a"\n[[include]]\nname = ""', "include 1.name must be a string"),
        ('axes.repro = "a"\n[[include]]\nversion = "1"', "unknown key include 1.version"),
        ('axes.repro = ["a", "b"]\n[[include]]\npython = "3.11"', "an include must name its repro"),
        ('axes.repro = "a"\n[[include]]\nrepro = "a"', "a is in the matrix twice"),
        (
            'axes.repro = "a"\n[[include]]\nhold = ["numpy<2"]',
            "two different cells are named a; give the include a name",
        ),
        ('axes.repro = "a"\n[[exclude]]\nrepro = "b"', 'exclude 1 (repro = "b") matches no cell'),
        ('axes.repro = "a"\n[[exclude]]', "exclude 1 is empty"),
        ('axes.repro = "a"\n[[exclude]]\npython = "3.11"', "exclude 1 names python, which is not an axis"),
        ('axes.repro = "a"\n[[exclude]]\nrepro = "a"', "exclude leaves no cells"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(matrix, text, words):
    assert words in refused(matrix, text)


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path):
    with pytest.raises(BadMatrix, match=r"can't read the matrix .*nowhere\.toml"):
        read_matrix(tmp_path / "nowhere.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadMatrix, match="is not text in UTF-8"):
        read_matrix(tmp_path / "odd.toml")


VERSIONS = st.lists(st.integers(0, 9).map(lambda n: f"1.{n}"), min_size=1, max_size=4, unique=True)


@given(torch=VERSIONS, peft=VERSIONS, flags=st.lists(st.booleans(), min_size=1, max_size=2, unique=True))
def test_a_new_value_renames_no_cell(torch, peft, flags):
    """A cell's name is made of its own values, so that it stays the same when others come."""
    axes = {"repro": ("a",), "packages.torch": torch, "packages.peft": peft, "parameters.x": flags}
    small = Matrix("m", {axis: tuple(values) for axis, values in axes.items()})
    large = evolve(small, axes={**small.axes, "packages.torch": (*torch, "2.0")})
    assert len(small.cells) == len(torch) * len(peft) * len(flags)
    assert {cell.name for cell in small.cells} < {cell.name for cell in large.cells}


def test_tags_are_words_that_nox_can_select_by(matrix):
    (cell,) = matrix('axes.repro = "repros/step.py"\naxes.packages.torch = ">=2,<3"\naxes.parameters.x = true').cells
    assert cell.tags == ("repros_step_py", "torch_2_3", "x_true")
    assert all(tag.isidentifier() for tag in cell.tags)


def test_the_arguments_are_those_of_harness_probe(matrix):
    """The command line takes them and gives the values back."""
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
    assert told["hold"] == ("numpy<2.3",)
    assert (told["python"], told["device"], told["as_of"]) == ("3.11", "cpu", "2025-06-27")
    assert told["params"] == ('hook="conv 1"', "n=2")


@pytest.mark.parametrize("path", sorted((ROOT / "matrices").glob("*.toml")), ids=lambda path: path.stem)
def test_the_matrices_of_this_repository_name_repros_and_cases_that_exist(path):
    for cell in read_matrix(path).cells:
        assert find_repro(cell.repro, ROOT).with_params(cell.params).signature is not None


def test_the_example_explains_every_key():
    """Each key of the file format has its comment in the example."""
    lines = (ROOT / "matrices" / "transformers.toml").read_text(encoding="utf-8").splitlines()
    keys = ("hold =", "with =", "[axes]", "repro =", "python =", "device =", "as-of =", "[axes.packages]")
    for key in (*keys, "[axes.parameters]", "[[include]]", "[[exclude]]"):
        place = next(number for number, line in enumerate(lines) if line.startswith(key))
        assert lines[place - 1].startswith("# "), key


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
