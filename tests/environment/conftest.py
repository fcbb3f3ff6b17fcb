"""These tests look into the cache and damage it, so each has its own."""

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache of the harness for one test."""
    return tmp_path / "cache"
