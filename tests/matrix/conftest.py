"""Matrices out of the text of a file, read or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import BadMatrix
from harness.matrix import Matrix, read_matrix


@pytest.fixture
def matrix(tmp_path: Path) -> Callable[[str], Matrix]:
    """A matrix out of the text of its file."""

    def read(text: str) -> Matrix:
        path = tmp_path / "small.toml"
        path.write_text(text, encoding="utf-8")
        return read_matrix(path)

    return read


@pytest.fixture
def refused(matrix: Callable[[str], Matrix]) -> Callable[[str], str]:
    """The sentence with which a file is refused, on reading it or on making its cells."""

    def words(text: str) -> str:
        with pytest.raises(BadMatrix) as caught:
            _ = matrix(text).cells
        assert "\n" not in caught.value.message
        return caught.value.message

    return words
