"""The disk space of an environment: nothing for wheels in uv's cache, measured factors for the others."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import Environment, PipSettings
from harness.environment.disk_space import DiskEstimate, DiskEstimator
from harness.model import Combination, Lock, Pin

MIB = 2**20


def lock_of(*pins):
    return Lock("3.11.7", "linux-x86_64", pins)


def pin(name, size, version="1.0", tags="py3-none-any"):
    return Pin(name, version, f"{name}-{version}-{tags}.whl", size=size)


@pytest.fixture
def uv_folder(tmp_path):
    """Wheels in the layout of uv: `known` 1.0 and, under a digest of long tags, 2.0."""
    shelf = tmp_path / "uv" / "wheels-v12"
    for entry in ("1.0-py3-none-any", "2.0-516d0c2242d49034"):
        info = shelf / "index" / "0a1b" / "known" / entry / "known.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").write_text(f"known/a.py,sha256=x,{30 * MIB}\nknown/b.py,sha256=x,{10 * MIB}\n{info},,\n")
    return shelf


def test_a_cached_wheel_takes_one_copy_and_a_stored_one_nothing(uv_folder):
    estimator = DiskEstimator(uv_folder)
    for version, tags in {"1.0": "py3-none-any", "2.0": "cp311-cp311-manylinux_2_17.and_more"}.items():
        estimate = estimator.estimate(lock_of(pin("known", 50 * MIB, version, tags)))
        assert estimate == DiskEstimate(own=DiskEstimate().own + 40 * MIB)
        assert str(estimate) == "nothing to download, uv's cache has all of it"
    stored = DiskEstimator(uv_folder, is_stored=lambda pin: pin.name == "known")
    assert stored.estimate(lock_of(pin("known", 50 * MIB))) == DiskEstimate()


def test_a_missing_wheel_takes_its_packed_and_unpacked_size(uv_folder):
    estimator = DiskEstimator(uv_folder)
    estimate = estimator.estimate(lock_of(pin("fresh", 10 * MIB), pin("cuda", 400 * MIB), pin("known", 1)))
    assert (estimate.download, estimate.unpacked, estimate.unsized) == (410 * MIB, 845 * MIB, 0)
    assert str(estimate) == "about 410 MiB to download, up to 845 MiB on disk"
    other = estimator.estimate(lock_of(pin("known", 10 * MIB, "1.0", "cp312-cp312-linux_x86_64")))
    assert other.download == 10 * MIB


def test_an_unknown_size_is_estimated_from_another_release_or_reported(uv_folder):
    estimate = DiskEstimator(uv_folder).estimate(lock_of(pin("known", None, "3.0"), pin("fresh", None)))
    assert (estimate.unpacked, estimate.download, estimate.unsized) == (40 * MIB, 20 * MIB, 1)
    assert str(estimate).endswith("on disk, and 1 wheel of unknown size")
    assert "1 wheel of unknown size to download" in str(DiskEstimator(uv_folder).estimate(lock_of(pin("fresh", None))))


def test_an_empty_cache_has_nothing(tmp_path):
    assert DiskEstimator(tmp_path / "none").estimate(lock_of(pin("fresh", MIB))).download == MIB


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
    assert (other.download > 0, other.unsized) == (True, 0)  # taken from 1.0
