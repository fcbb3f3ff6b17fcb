"""One bundle that has been run, for all tests that only look at what came back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from carried import asked, pack, run_there
from support import make_parts

from harness.environment import PipSettings


@pytest.fixture(scope="session")
def run_once(tmp_path_factory, house, uv_cache, interpreter) -> Path:
    folder = tmp_path_factory.mktemp("carried")
    parts = make_parts(folder, PipSettings(index_url=house.url), uv_cache, interpreter)
    pack(parts, folder / "carry", asked(parts, "1.2"), asked(parts, "1.6"))
    ended = run_there(folder / "carry")
    assert ended.code == 0, ended.stdout + ended.stderr
    return folder / "carry"


@pytest.fixture
def back(run_once, tmp_path) -> Path:
    """A copy of it to spoil."""
    return Path(shutil.copytree(run_once, tmp_path / "back"))
