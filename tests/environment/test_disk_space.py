"""Space is freed before a build, or the shortage is reported; files shared with others do not count."""

from __future__ import annotations

import os
import shutil

import pytest
from attrs import evolve

from harness.environment import DiskSpace, Workspace
from harness.environment.cleaning import own_bytes
from harness.environment.disk_estimate import DiskEstimate
from harness.errors import NoSpace
from harness.model import Combination

MIB = 2**20


def test_a_file_counts_once_and_only_if_all_its_links_are_inside(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "a", inside / "b", outside):
        folder.mkdir(parents=True)
    empty = own_bytes(inside)
    (inside / "a" / "twice").write_bytes(b"x" * MIB)
    os.link(inside / "a" / "twice", inside / "b" / "twice")
    (outside / "shared").write_bytes(b"x" * 5 * MIB)
    os.link(outside / "shared", inside / "a" / "shared")
    (inside / "link").symlink_to(outside)
    assert MIB <= own_bytes(inside) - empty < 2 * MIB
    assert own_bytes(inside / "a") < MIB
    assert own_bytes(inside, outside) > 6 * MIB
    assert own_bytes(tmp_path / "none") == 0


def test_too_little_disk_is_reported_with_sizes_before_any_build(parts):
    free = shutil.disk_usage(parts.workspace.building).free
    disk_space = DiskSpace(parts.workspace)
    disk_space.reserve(DiskEstimate(), parts.workspace.root / "uv")
    with pytest.raises(NoSpace, match=r"needs up to .* GiB at .* are free, and 512 MiB must stay free") as caught:
        disk_space.reserve(DiskEstimate(unpacked=free), parts.workspace.root / "uv")
    assert "harness clean" in caught.value.hint
    assert "HARNESS_CACHE_DIR" in caught.value.hint


def test_a_full_disk_builds_nothing(parts):
    lock = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, ("brittle==1.2",))).lock
    builder = evolve(parts.builder, size_of=lambda pin: 2**50)
    builder = evolve(
        builder, uv=evolve(builder.uv, extra_environment={"UV_CACHE_DIR": str(parts.workspace.root / "uv")})
    )
    with pytest.raises(NoSpace):
        builder.build(lock)
    assert list(parts.workspace.environments.iterdir()) == []
    assert list(parts.workspace.building.iterdir()) == []


def test_nothing_is_removed_within_the_limit(tmp_path):
    told = []
    disk_space = DiskSpace(Workspace(tmp_path / "cache"), 200 * MIB, told.append)
    disk_space.reserve(DiskEstimate(), tmp_path)
    assert told == []
