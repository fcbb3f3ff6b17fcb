"""Which index is asked if no setting names one."""

from __future__ import annotations

import pytest

from harness.environment.pages import _default_index
from harness.errors import IndexFault


@pytest.fixture(autouse=True)
def unknown():
    """Neither a test before this one nor one after it knows the index."""
    _default_index.cache_clear()
    yield
    _default_index.cache_clear()


def test_without_a_setting_the_index_is_the_one_that_uv_names():
    assert _default_index().endswith("/simple/")


def test_a_uv_that_names_none_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr("harness.environment.pages.find_uv_bin", lambda: "true")
    with pytest.raises(IndexFault, match="does not say"):
        _default_index()
