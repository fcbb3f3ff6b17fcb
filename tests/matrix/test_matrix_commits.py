"""Commits on package axes: `main`, `@1a2b3c4`; the keys they need, and the cells that they become."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from git_project import new_project

from harness.errors import BadRepository
from harness.matrix import Matrix, expanded
from harness.matrix.reading import choose
from harness.matrix.running import CommitLookup, known_as
from harness.model.culprit import PinnedCommit
from harness.model.lock import moment_of

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "docs" / "reference" / "matrix.schema.json").read_text(encoding="utf-8"))
TEXT = """
[axes]
repro = "step"
[axes.packages]
shop = ["1.0", "1.1", "main", "@v1.0"]
[repositories]
shop = "~/src/shop"
"""
SHAS = {"main": "abc1234" + "0" * 33, "v1.0": "1234567" + "0" * 33}


def commit_of(project: str, revision: str) -> PinnedCommit:
    """A made-up commit."""
    return PinnedCommit(project, revision, SHAS[revision], "/clones/shop", "~/src/shop", "2024-01-01T00:00:00+00:00")


def with_commits(matrix: Matrix) -> Matrix:
    return expanded(matrix, lambda project: pytest.fail("the index was asked"), [], commit_of)


def test_a_cell_takes_the_commit_and_keeps_its_name(matrix) -> None:
    """The label has the hash; the name is the same every night."""
    cells = with_commits(matrix(TEXT)).cells
    assert [cell.name for cell in cells] == ["step-shop-1.0", "step-shop-1.1", "step-shop-main", "step-shop-v1.0"]
    assert [cell.label for cell in cells[2:]] == ["step-shop-main@abc1234", "step-shop-v1.0@1234567"]
    assert cells[2].choice["packages.shop"] == "main@abc1234"
    assert cells[2].requirements == ()
    assert cells[2].arguments[1:3] == ("--with", f"shop @ /clones/shop@{SHAS['main']}")
    assert cells[0].label == cells[0].name


def test_a_commit_replaces_a_requirement_of_all_cells(matrix) -> None:
    (*_, cell) = with_commits(matrix('with = ["shop==0.9", "till"]\n' + TEXT.replace('"@v1.0"', ""))).cells
    assert cell.requirements == ("till",)


def test_two_revisions_of_one_commit_are_one_cell(matrix, monkeypatch) -> None:
    monkeypatch.setitem(SHAS, "v1.0", SHAS["main"])
    assert [cell.name for cell in with_commits(matrix(TEXT)).cells][2:] == ["step-shop-main"]


def test_exclusions_and_inclusions_accept_commits(matrix) -> None:
    pinned = 'packages.shop = "@v1.0"\n'
    more = f'[[exclude]]\n{pinned}[[include]]\n{pinned}device = "cpu"\n'
    cells = with_commits(matrix(TEXT + more)).cells
    assert [cell.label for cell in cells[2:]] == ["step-shop-main@abc1234", "step-shop-v1.0@1234567-cpu"]


def test_a_range_does_not_exclude_commits(matrix) -> None:
    cells = with_commits(matrix(TEXT + '[[exclude]]\npackages.shop = ">=1"\n')).cells
    assert [cell.name for cell in cells] == ["step-shop-main", "step-shop-v1.0"]


def test_keywords_select_commits_by_name(matrix) -> None:
    """By the permanent name, or by the label that is shown."""
    for words in ("shop_main", "main@abc1234"):
        assert [cell.name for cell in choose(with_commits(matrix(TEXT)), words).cells] == ["step-shop-main"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('axes.repro = "a"\naxes.packages.shop = "main"', "repositories.shop"),
        ('axes.repro = "a"\n[[include]]\npackages.shop = "@v1"', "repositories.shop"),
        ('axes.repro = "a"\naxes.packages.shop = "@"\nrepositories.shop = "x"', "'@'"),
        ('axes.repro = "a"\naxes.packages.shop = "@-x"\nrepositories.shop = "x"', "'@-x'"),
        ('axes.repro = "a"\nrepositories = "x"', "repositories must be a table"),
        ('axes.repro = "a"\nrepositories.shop = 1', "repositories.shop"),
    ],
)
def test_an_invalid_commit_is_refused(refused, text: str, said: str) -> None:
    assert said in refused(text)


def test_a_branch_is_resolved_as_it_was_that_day(tmp_path: Path) -> None:
    """A tag or a hash means its commit, whenever it was made."""
    project = new_project(tmp_path / "clone")
    older = project.commit("Begin", {"a": "1"})
    project.commits = 100  # 2024-02-22
    newer = project.commit("Go on", {"a": "2"})
    project.git("tag", "v2")
    then = moment_of("2024-01-01")
    lookup = CommitLookup({"shop": str(project.folder)}, tmp_path / "cache", then)
    assert [lookup.find("shop", text).sha for text in ("main", "v2", newer[:9])] == [older, newer, newer]
    assert CommitLookup({"shop": str(project.folder)}, tmp_path / "cache").find("Shop", "main").sha == newer
    known = CommitLookup({"shop": str(project.folder)}, tmp_path, then, {known_as("shop", "main"): newer})
    assert known.find("shop", "main").sha == newer
    with pytest.raises(BadRepository):
        CommitLookup({"shop": str(project.folder)}, tmp_path, moment_of("2020-01-01")).find("shop", "main")


@pytest.mark.parametrize("path", sorted((ROOT / "matrices").glob("*.toml")), ids=lambda path: path.stem)
def test_the_schema_accepts_the_matrices_of_this_repository(path: Path) -> None:
    jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), SCHEMA)


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    jsonschema.validate(tomllib.loads(TEXT), SCHEMA)
    for text in ('axes.repro = "a"\nrows = 1', 'axes.repro = "a"\nrepositories.shop = 1', 'axes.python = "3.11"'):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(text), SCHEMA)
