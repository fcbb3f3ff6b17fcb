"""A matrix file is read, or refused with one sentence that says what to fix."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from attrs import evolve

from harness.errors import BadMatrix
from harness.matrix import read_matrix
from harness.question.repros import find_repro

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "docs" / "reference" / "matrix.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("axes = [", "is not valid TOML"),
        ("", "axes.repro must name a repro"),
        ("axes = 3", "axes must be a table"),
        ('axes.repro = "a"\nrows = 1', "unknown keys: rows; known keys: axes, exclude, hold, include, with"),
        ('axes.repro = "a"\naxes.pythons = "3.11"', "axes has unknown keys: pythons"),
        ("axes.repro = []", "axes.repro has no values"),
        ('axes.repro = ["a", "a"]', "axes.repro has 'a' twice"),
        ('axes.repro = ""', "must be a string in quotes"),
        ('axes.repro = "a"\naxes.python = 3.10', "axes.python must be a Python version like 3.11 in quotes, not 3.1"),
        ('axes.repro = "a"\naxes.python = "python3"', "must be a Python version"),
        ('axes.repro = "a"\naxes.device = "tpu"', "axes.device must be one of auto, cpu, cuda, emulated, not 'tpu'"),
        ('axes.repro = "a"\naxes.as-of = "today"', "is not a date like 2025-06-27, era or none"),
        ('axes.repro = "a"\naxes.packages = "torch"', "axes.packages must be a table"),
        ('axes.repro = "a"\naxes.packages.torch = "new"', "must be a version like 4.53.0, a range"),
        (
            'axes.repro = "a"\naxes.packages.torch = "latest peft"',
            "'latest peft' names peft, but this axis is of torch",
        ),
        (
            'axes.repro = "a"\naxes.packages.torch = "latest 0"',
            "'latest 0' selects no release; the count must be at least 1",
        ),
        ('axes.repro = "a"\naxes.packages.torch = "prereleases 3"', "'prereleases 3' must be a version"),
        ('axes.repro = "a"\naxes.packages.torch = "main"', "'main' must be a version"),
        ('axes.repro = "a"\naxes.packages.torch = "torch"', "'torch' must be a version"),
        ('axes.repro = "a"\naxes.packages.torch = "latest ~=x"', "'latest ~=x' must be a version"),
        ('axes.repro = "a"\naxes.packages.torch = "4.53.*"', "'4.53.*' must be a version"),
        (
            'axes.repro = "a"\n[[include]]\npackages.torch = "latest 2"',
            "include 1.packages.torch: 'latest 2' must be a version",
        ),
        (
            'axes.repro = "a"\n[[include]]\npackages.torch = ">=2"',
            "include 1.packages.torch: '>=2' must be a version",
        ),
        (
            'axes.repro = "a"\naxes.packages.torch = "latest"\n[[exclude]]\npackages.torch = "latest"',
            "exclude 1.packages.torch: 'latest': an exclude takes only",
        ),
        ('axes.repro = "a"\naxes.packages.torch = "1.0 or so"', "must be a version"),
        ('axes.repro = "a"\naxes.parameters.x = [[1]]', "must be a string, a number, true or false"),
        ('hold = "numpy<2"\naxes.repro = "a"', "hold must be a list of requirements"),
        ('hold = ["numpy 2"]\naxes.repro = "a"', "hold: 'numpy 2' is not a requirement"),
        ('with = [3]\naxes.repro = "a"', "with: 3 is not a requirement"),
        ('axes.repro = "a"\n[include]\nrepro = "b"', "include must be a list of tables: [[include]]"),
        ('axes.repro = "a"\n[[include]]\nrepro = ["b", "c"]', "include 1.repro must be a single value"),
        ('axes.repro = "a"\n[[include]]\nversion = "1"', "include 1 has unknown keys: version"),
        ('axes.repro = ["a", "b"]\n[[include]]\npython = "3.11"', "an include must name its repro"),
        ('axes.repro = "a"\n[[include]]\nrepro = "a"', "a is in the matrix twice"),
        ('axes.repro = "a"\n[[include]]\nhold = ["numpy<2"]', "include 1 has unknown keys: hold"),
        ('axes.repro = "a"\naxes.parameters.n = [1, "1"]', "two different cells are named a-n=1"),
        ('axes.repro = "a"\n[[exclude]]\nrepro = "b"', 'exclude 1 (repro = "b") matches no cell'),
        ('axes.repro = "a"\n[[exclude]]', "exclude 1 is empty"),
        ('axes.repro = "a"\n[[exclude]]\npython = "3.11"', "exclude 1 names python, which is not an axis"),
        ('axes.repro = "a"\n[[exclude]]\nrepro = "a"', "leave no cells"),
    ],
)
def test_a_mistake_gives_one_sentence(refused, text, words):
    assert words in refused(text)


def test_a_missing_or_binary_file_is_reported(tmp_path):
    with pytest.raises(BadMatrix, match=r"can't read the matrix .*nowhere\.toml"):
        read_matrix(tmp_path / "nowhere.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadMatrix, match="is not text in UTF-8"):
        read_matrix(tmp_path / "odd.toml")


@pytest.mark.parametrize("path", sorted((ROOT / "matrices").glob("*.toml")), ids=lambda path: path.stem)
def test_the_matrices_of_this_repository_name_repros_and_cases_that_exist(path):
    asked = read_matrix(path)
    plain = {axis: ("1.0",) if axis.startswith("packages.") else values for axis, values in asked.axes.items()}
    for cell in (evolve(asked, axes=plain) if asked.needs_index else asked).cells:
        assert find_repro(cell.repro, ROOT).with_params(cell.params).signature is not None


KEYS = ("hold =", "with =", "[axes]", "repro =", "python =", "device =", "as-of =", "[axes.packages]")
KEYS += ("[axes.parameters]", "[[include]]", "[[exclude]]")


@pytest.mark.parametrize("path", sorted((ROOT / "matrices").glob("*.toml")), ids=lambda path: path.stem)
def test_every_key_of_a_matrix_has_a_comment(path):
    """The example has every key of the file format."""
    lines = path.read_text(encoding="utf-8").splitlines()
    places = {key: n for key in KEYS for n, line in reversed(list(enumerate(lines))) if line.startswith(key)}
    assert all(lines[place - 1].startswith("# ") for place in places.values())
    assert path.stem != "transformers" or set(places) == set(KEYS)


@pytest.mark.parametrize("path", sorted((ROOT / "matrices").glob("*.toml")), ids=lambda path: path.stem)
def test_the_schema_accepts_the_matrices_of_this_repository(path: Path) -> None:
    jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), SCHEMA)


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    for text in ('axes.repro = "a"\nrows = 1', 'axes.repro = "a"\nrepositories.shop = "x"', 'axes.python = "3.11"'):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(text), SCHEMA)
