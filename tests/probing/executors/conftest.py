"""One cluster for all tests: two workers like this machine, with GPUs of two kinds, and one that is not like it."""

from __future__ import annotations

import os

import pytest
from machines import machines


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, house, uv_cache):
    """Workers `one` and `two`, and `stranger`, which pretends to be another kind of machine."""
    environ = {
        **house.environ,
        "UV_CACHE_DIR": str(uv_cache),
        "PIP_CONFIG_FILE": os.devnull,
        "HARNESS_SANDBOX": "off",  # a test watches a run by files outside its folders
    }
    with machines(tmp_path_factory.mktemp("cluster"), environ) as started:
        started.add("one", gpu="NVIDIA A100")
        started.add("two", gpu="NVIDIA T4")
        started.add("stranger", pretends=True)
        started.wait_until_there("one", "two", "stranger")
        yield started
