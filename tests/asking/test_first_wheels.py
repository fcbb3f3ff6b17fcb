"""A good day on which a compiled package had no wheel for this Python yet."""

from __future__ import annotations

import pytest
from planted_upgrades import source, suite_of, write_project
from wheelhouse import Wheelhouse

RUN = ("--run", "python -m unittest -q test_mine", "--json")


@pytest.fixture
def aged(harness, tmp_path_factory):
    """`aged` has a wheel for an older Python, then one for any Python, and then it breaks."""
    house = Wheelhouse(tmp_path_factory.mktemp("aged"))
    old = "cp38-cp38-manylinux1_x86_64"
    house.add("aged", "1.0", files={"aged.py": source("1.0")}, tag=old, uploaded="2022-01-01T12:00:00Z")
    house.add("aged", "1.1", files={"aged.py": source("1.1")}, uploaded="2023-06-01T12:00:00Z")
    house.add("aged", "2.0", files={"aged.py": source("2.0", broken="aged is broken")}, uploaded="2024-01-01T12:00:00Z")
    return harness.with_environ(**house.environ)


def test_its_first_wheel_is_installed_and_reported(aged):
    write_project(aged.folder, suite_of("aged"), requires=["aged"])
    answer = aged("bisect", "--good", "2022-03-01", "--bad", "2024-03-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("aged", "1.1", "2.0")
    assert any("aged 1.1" in note for note in answer["notes"])
