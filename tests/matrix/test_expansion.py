"""A matrix is expanded for the Pythons that it names, or for the current one."""

from __future__ import annotations

from support import make_parts, sessions_of
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.matrix import Matrix
from harness.matrix.running import expanded_by_index


def test_wheels_are_matched_to_the_named_pythons(tmp_path, uv_cache, interpreter):
    """They need not be installed, and one that accepts a wheel is enough."""
    house = Wheelhouse(tmp_path / "own")
    house.add("x", "1.0")
    house.add("x", "2.0", tag="cp39-none-any")
    house.add("x", "3.0", tag="cp399-none-any")
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter)
    session = sessions_of(parts)[None]

    def found(**more):
        axes = {"repro": ("step",), **more, "packages.x": (">=1",)}
        return expanded_by_index(Matrix("m", axes), session)

    assert found().axes["packages.x"] == ("1.0",)
    assert found(python=("3.9", "3.11")).axes["packages.x"] == ("1.0", "2.0")
    assert [row.version for row in found(python=("3.9",)).left_out] == ["3.0"]
