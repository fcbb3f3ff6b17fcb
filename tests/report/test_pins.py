"""Bounds in a pyproject.toml: where the requirement stands, in its own form, and nothing else changes."""

from __future__ import annotations

import pytest

from harness.errors import UserMistake
from harness.report.commands import bounded_pyproject, difference

TEXT = """\
[project]
dependencies = ["NumPy >=1.20", 'scipy[fast]; python_version < "3.13"']  # as needed

[project.optional-dependencies]
plots = ["matplotlib==3.8.0"]

[dependency-groups]
test = ["pytest>=8", {include-group = "lint"}]
lint = ["ruff"]
"""


@pytest.mark.parametrize(
    ("constraint", "before", "after"),
    [
        ("numpy<2", '"NumPy >=1.20"', '"NumPy >=1.20,<2"'),
        ("scipy<1.15", "'scipy[fast]; python", "'scipy[fast]<1.15; python"),
        ("matplotlib<3.9", '"matplotlib==3.8.0"', '"matplotlib==3.8.0,<3.9"'),
        ("pytest<9", '"pytest>=8"', '"pytest>=8,<9"'),
        ("ruff==0.5.1", '"ruff"', '"ruff==0.5.1"'),
        ("absent<3", 'dependencies = ["NumPy', 'dependencies = ["absent<3", "NumPy'),
    ],
)
def test_a_requirement_is_bounded_where_it_stands(constraint: str, before: str, after: str) -> None:
    assert bounded_pyproject(TEXT, [constraint]) == TEXT.replace(before, after)


def test_an_empty_list_and_one_over_several_lines_take_a_new_one() -> None:
    assert bounded_pyproject("[project]\ndependencies = []\n", ["a<1"]) == '[project]\ndependencies = ["a<1", ]\n'
    many = '[project]\ndependencies = [\n    "b",\n]\n'
    assert bounded_pyproject(many, ["a<1"]) == '[project]\ndependencies = [\n    "a<1",\n    "b",\n]\n'


def test_without_a_list_it_says_so() -> None:
    with pytest.raises(UserMistake, match="for a<1"):
        bounded_pyproject("[tool.poetry]\nname = 'x'\n", ["a<1"])


def test_no_change_is_no_diff() -> None:
    assert difference(TEXT, TEXT, "pyproject.toml") == ""
