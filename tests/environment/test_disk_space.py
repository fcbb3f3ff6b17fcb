"""Space is freed before a build, or the shortage is reported; files shared with others do not count."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from attrs import evolve
from support import Heard, make_parts
from wheelhouse import Wheelhouse

from harness.environment import DiskSpace, Environment, PipSettings, Workspace
from harness.environment.disk_space import DiskEstimate, own_bytes
from harness.errors import NoSpace
from harness.events import Note
from harness.model import Combination, Pin

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
    assert own_bytes(inside, outside) >= 6 * MIB
    assert own_bytes(tmp_path / "none") == 0


def test_too_little_disk_is_reported_with_sizes_before_any_build(parts):
    free = shutil.disk_usage(parts.workspace.building).free
    disk_space = DiskSpace(parts.workspace)
    disk_space.reserve(DiskEstimate())
    with pytest.raises(NoSpace, match=r"needs up to .* GiB at .* are free, and 512 MiB must stay free") as caught:
        disk_space.reserve(DiskEstimate(own=free))
    assert "harness clean" in caught.value.hint
    assert "HARNESS_CACHE_DIR" in caught.value.hint


def test_a_full_disk_builds_nothing(parts):
    lock = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, ("brittle==1.2",))).lock
    builder = evolve(parts.builder, size_of=lambda pin: 2**50)
    with pytest.raises(NoSpace):
        builder.build(lock)
    assert list(parts.workspace.environments.iterdir()) == []
    assert list(parts.workspace.building.iterdir()) == []


def test_nothing_is_removed_within_the_limit(tmp_path):
    told = []
    disk_space = DiskSpace(Workspace(tmp_path / "cache"), 200 * MIB, told.append)
    disk_space.reserve(DiskEstimate())
    assert told == []


def nearly_full(parts, heard, missing):
    """A builder on a disk that lacks some bytes for the next environment, and gets back what removals free."""
    used = own_bytes(parts.workspace.environments)
    free = 640 * MIB - missing

    def free_bytes(_):
        return free + used - own_bytes(parts.workspace.environments)

    disk_space = DiskSpace(parts.workspace, reporter=heard, free_bytes=free_bytes)
    return evolve(parts.builder, disk_space=disk_space, size_of=lambda pin: 1)


def test_a_nearly_full_disk_costs_the_least_recently_used_environments_of_this_run(parts):
    locks = [
        parts.resolver.resolve(Combination(parts.resolver.interpreter.version, (f"brittle=={version}",))).lock
        for version in ("1.0", "1.1", "1.2", "1.3", "1.4")
    ]
    heard = Heard()
    for lock in locks[:4]:
        parts.builder.build(lock)
        parts.builder.let_go()
    builder = nearly_full(parts, heard, 1)
    for age, lock in ((40, locks[1]), (30, locks[2]), (20, locks[3]), (10, locks[0])):
        moment = time.time() - age
        os.utime(builder.build(lock).folder, (moment, moment))
    builder.build(locks[4])
    left = {folder.name for folder in parts.workspace.environments.iterdir()}
    assert locks[1].id not in left
    assert {locks[3].id, locks[0].id, locks[4].id} <= left
    assert "because the disk is nearly full" in heard.of(Note)[0].sentence
    assert builder.build(locks[1])  # built again


def test_nothing_is_removed_where_that_would_not_make_enough_space(parts):
    lock, more = (
        parts.resolver.resolve(Combination(parts.resolver.interpreter.version, (f"brittle=={version}",))).lock
        for version in ("1.0", "1.1")
    )
    parts.builder.build(lock)
    parts.builder.let_go()
    heard = Heard()
    builder = nearly_full(parts, heard, 500 * MIB)
    with pytest.raises(NoSpace):
        builder.build(more)
    assert [folder.name for folder in parts.workspace.environments.iterdir()] == [lock.id]
    assert heard.events == []


def pin(name, size, version="1.0", tags="py3-none-any"):
    return Pin(name, version, f"{name}-{version}-{tags}.whl", size=size)


def estimate(uv_wheels, *pins):
    return DiskEstimate.of(pins, lambda pin: pin.size, uv_wheels)


@pytest.fixture
def uv_wheels(tmp_path):
    """Wheels in the layout of uv: `known` 1.0 and, under a digest of long tags, 2.0."""
    for entry in ("1.0-py3-none-any", "2.0-516d0c2242d49034"):
        (tmp_path / "uv" / "wheels-v12" / "index" / "0a1b" / "known" / entry).mkdir(parents=True)
    return tmp_path / "uv" / "wheels-v12"


def test_a_cached_wheel_takes_only_one_copy(uv_wheels):
    for version, tags in {"1.0": "py3-none-any", "2.0": "cp311-cp311-manylinux_2_17.and_more"}.items():
        found = estimate(uv_wheels, pin("known", 10 * MIB, version, tags))
        assert found == DiskEstimate(own=DiskEstimate().own + 45 * MIB)
        assert str(found) == "nothing to download, uv's cache has all of it"


def test_a_missing_wheel_takes_its_packed_and_unpacked_size(uv_wheels):
    found = estimate(uv_wheels, pin("fresh", 10 * MIB), pin("cuda", 400 * MIB), pin("known", 1))
    assert (found.download, found.own, found.unsized) == (410 * MIB, 845 * MIB + 4 + DiskEstimate().own, 0)
    assert str(found) == "about 410 MiB to download, up to 973 MiB on disk"
    other = estimate(uv_wheels, pin("known", 10 * MIB, "1.0", "cp312-cp312-linux_x86_64"))
    assert other.download == 10 * MIB
    assert estimate(uv_wheels / "none", pin("fresh", MIB)).download == MIB


def test_wheels_of_unknown_size_are_counted(uv_wheels):
    assert str(estimate(uv_wheels, pin("fresh", None))) == "1 wheel of unknown size to download"
    assert str(estimate(uv_wheels, pin("fresh", None), pin("cuda", MIB))).endswith(
        "on disk, and 1 wheel of unknown size"
    )


def test_the_cache_layout_of_real_uv_is_understood(tmp_path, interpreter):
    """The layout of uv's cache is not a public interface: this test fails when a new uv changes it."""
    house = Wheelhouse(tmp_path / "house")
    for version in ("1.0", "2.0"):
        house.add("one", version)
        house.add_link("linked", version)
    settings = PipSettings(index_url=house.url, find_links=(str(house.links),))
    parts = make_parts(tmp_path, settings, tmp_path / "uv", interpreter)
    builder = evolve(parts.builder, size_of=parts.index.size_of)

    def lock(version):
        asked = Combination(interpreter.version, (f"one=={version}", f"linked=={version}"))
        return parts.resolver.resolve(asked).lock

    before = builder.estimate(lock("1.0"))
    assert (before.unsized, before.download) == (1, 0)  # to read what `linked` requires uv has unpacked it
    assert isinstance(builder.build(lock("1.0")), Environment)
    assert builder.estimate(lock("1.0")) is None
    (parts.workspace.environments / lock("1.0").id).rename(tmp_path / "moved")
    assert builder.estimate(lock("1.0")) == DiskEstimate()
    other = builder.estimate(lock("2.0"))
    assert (other.download, other.unsized) == (0, 1)
