"""`harness doctor` tells what is missing; `harness clean` frees what can be made again."""

from __future__ import annotations

import os
import time

import pytest
from wheelhouse import free_port_url


@pytest.fixture
def own(harness, write_repro, tmp_path, house):
    """A harness with a cache of its own that holds two environments, one of them unused for ten days."""
    write_repro("brittle")
    own = harness.with_environ(HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    for release in ("1.1", "1.2"):
        assert own("probe", "brittle_step", "--with", f"brittle=={release}").code == 0
    old = min((tmp_path / "cache" / "environments").iterdir(), key=lambda path: path.stat().st_mtime)
    then = time.time() - 10 * 86400
    os.utime(old, (then, then))
    return own


def environments(tmp_path):
    return sorted((tmp_path / "cache" / "environments").iterdir())


def test_doctor_finds_all_in_order(harness, tmp_path, house):
    house.add("pip", "1.0")
    ended = harness("doctor", HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    lines = {line.split()[1]: line.split()[0] for line in ended.stdout.splitlines()}
    assert (ended.code, set(lines.values())) == (0, {"ok"})
    assert lines.keys() == {"python", "uv", "index", "cache", "results", "gpu"}


def test_doctor_tells_what_fails_and_goes_on(harness, tmp_path):
    ended = harness("doctor", UV_DEFAULT_INDEX=free_port_url(), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    failed = [line for line in ended.stdout.splitlines() if line.startswith("FAIL")]
    assert ended.code == 1
    assert len(failed) == 1
    assert "can't be reached" in failed[0]
    assert "ok    gpu" in ended.stdout


def test_clean_needs_to_be_told_what(own, tmp_path):
    ended = own("clean")
    assert (ended.code, "say what to remove" in ended.stderr, len(environments(tmp_path))) == (2, True, 2)


def test_a_dry_run_removes_nothing(own, tmp_path):
    ended = own("clean", "--all", "--dry-run")
    assert ended.stdout.startswith("would remove 2 environments")
    assert len(environments(tmp_path)) == 2


def test_what_was_unused_for_long_is_removed(own, tmp_path):
    before = environments(tmp_path)
    assert own("clean", "--older-than", "9").stdout.startswith("removed 1 environments")
    left = environments(tmp_path)
    assert len(left) == 1
    assert set(left) < set(before)
    assert own("clean", "--older-than", "9").stdout.startswith("removed 0 environments")


def test_keep_leaves_what_fits_and_takes_the_rest(own, tmp_path):
    assert own("clean", "--keep", "100").stdout.startswith("removed 0 environments")
    assert own("clean", "--keep", "0").stdout.startswith("removed 2 environments")
    assert environments(tmp_path) == []


def test_results_outlive_a_clean_and_still_answer(own, tmp_path):
    assert own("clean", "--all").code == 0
    assert environments(tmp_path) == []
    assert list((tmp_path / "cache" / "building").iterdir()) == []
    assert own("probe", "brittle_step", "--with", "brittle==1.1", "--json").json["attempt"] == 0
    assert environments(tmp_path) == []
    assert own("probe", "brittle_step", "--with", "brittle==1.1", "--fresh").code == 0
    assert len(environments(tmp_path)) == 1
