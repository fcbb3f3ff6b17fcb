"""`harness doctor` reports what is missing; `harness clean` frees what can be rebuilt."""

from __future__ import annotations

import gc
import os
import time

import pytest
from wheelhouse import free_port_url


@pytest.fixture
def own(harness, write_repro, tmp_path, house):
    """A harness with its own cache that holds two environments, one of them unused for ten days."""
    write_repro("brittle")
    own = harness.with_environ(HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    for release in ("1.1", "1.2"):
        assert own("probe", "brittle_step", "--with", f"brittle=={release}").code == 0
    gc.collect()  # the locks of a command end with its process, but these ran in this one
    old = min((tmp_path / "cache" / "environments").iterdir(), key=lambda path: path.stat().st_mtime)
    then = time.time() - 10 * 86400
    os.utime(old, (then, then))
    return own


def environments(tmp_path):
    return sorted((tmp_path / "cache" / "environments").iterdir())


def test_doctor_finds_no_problem(harness, tmp_path, house):
    house.add("pip", "1.0")
    ended = harness("doctor", HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    lines = {line.split()[1]: line.split()[0] for line in ended.stdout.splitlines()}
    assert (ended.code, set(lines.values())) == (0, {"ok"})
    assert lines.keys() == {"python", "uv", "index", "cache", "results", "sandbox", "gpu", "device"}


def test_doctor_lists_gpus_and_what_auto_selects(harness, tmp_path, house):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\necho 0, NVIDIA T4, 15109, 12000, 550.54, GPU-a, 7.5\necho 1, Odd, [N/A], [N/A], 1, GPU-b, 7.5\n"
    )
    without = harness("doctor")
    assert "auto takes emulated for a repro that needs CUDA, cpu for any device" in without.stdout
    program.chmod(0o755)
    told = harness("doctor", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", CUDA_VISIBLE_DEVICES=None).stdout
    assert "0: NVIDIA T4, driver 550.54, 12 GiB of 15 GiB free, compute capability 7.5" in told
    assert "1: Odd, driver 1, memory unknown" in told
    assert "auto takes cuda for a repro that needs CUDA, cuda for any device, cpu for the CPU" in told


def large(folder):
    """Make an environment take 20 MiB."""
    (folder / "large").write_bytes(b"x" * (20 * 2**20))


def test_the_least_recently_used_environment_is_removed_and_reported(own, tmp_path):
    first, second = environments(tmp_path)
    old = min(first, second, key=lambda path: path.stat().st_mtime)
    young = second if old == first else first
    for folder in (old, young):
        then = folder.stat().st_mtime
        large(folder)
        os.utime(folder, (then, then))
    ended = own("probe", "brittle_step", "--with", "brittle==1.3", "--max-disk", "160MiB")
    assert ended.code == 0
    assert "removed 1 environment to stay below 160 MiB, the least recently used first; freed 20 MiB" in ended.stderr
    assert young.is_dir()
    assert not old.exists()


def test_recently_used_environments_stay_and_a_full_disk_is_reported(own, tmp_path):
    for folder in environments(tmp_path):
        large(folder)
        os.utime(folder)
    ended = own("probe", "brittle_step", "--with", "brittle==1.3", HARNESS_MAX_DISK="150MiB")
    assert ended.code == 6
    assert "more than the 150 MiB" in ended.stderr
    assert len(environments(tmp_path)) == 2
    wrong = own("probe", "brittle_step", "--max-disk", "much")
    assert (wrong.code, "'much' is not a size such as 20GiB" in wrong.stderr) == (2, True)
    wrong = own("probe", "brittle_step", HARNESS_MAX_DISK="much")
    assert (wrong.code, "HARNESS_MAX_DISK is 'much', not a size" in wrong.stderr) == (2, True)


def test_doctor_reports_a_failed_check_and_continues(harness, tmp_path):
    ended = harness("doctor", UV_DEFAULT_INDEX=free_port_url(), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    failed = [line for line in ended.stdout.splitlines() if line.startswith("FAIL")]
    assert ended.code == 1
    assert len(failed) == 1
    assert "can't be reached" in failed[0]
    assert "ok    gpu" in ended.stdout


def test_long_unused_environments_are_counted_by_doctor_and_a_dry_run_and_removed(own, tmp_path):
    (line,) = [line for line in own("doctor").stdout.splitlines() if line.split()[1] == "cache"]
    assert "GiB free at" in line
    assert "for 2 environments" in line
    assert own("clean", "--dry-run").stdout.startswith("would remove 2 environments")
    before = environments(tmp_path)
    assert len(before) == 2
    assert own("clean", "--older-than", "9").stdout.startswith("removed 1 environments")
    left = environments(tmp_path)
    assert len(left) == 1
    assert set(left) < set(before)
    assert own("clean", "--older-than", "9").stdout.startswith("removed 0 environments")
    assert own("clean").stdout.startswith("removed 1 environments")
    assert environments(tmp_path) == []


def test_results_survive_a_clean_and_still_answer(own, tmp_path):
    built = tmp_path / "cache" / "built" / "left"
    built.mkdir(parents=True, exist_ok=True)
    assert own("clean").code == 0
    assert not built.exists()
    assert environments(tmp_path) == []
    assert list((tmp_path / "cache" / "building").iterdir()) == []
    assert own("probe", "brittle_step", "--with", "brittle==1.1", "--json").json["attempt"] == 0
    assert environments(tmp_path) == []
    assert own("probe", "brittle_step", "--with", "brittle==1.1", "--fresh").code == 0
    assert len(environments(tmp_path)) == 1


def test_a_bisection_first_shows_the_download_size(harness, write_repro, tmp_path):
    write_repro("brittle")
    own = harness.with_environ(UV_CACHE_DIR=str(tmp_path / "uv"), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    command = ["bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--depth", "release", "--confirm", "1"]
    told = "disk space for the first environment: 1 wheel of unknown size to download"
    assert told in own(*command).stderr
    assert told not in own(*command).stderr


CACHE = ("aliases", "building", "built", "downloads", "environments", "index", "locks", "scratch", "trees", "wheels")


@pytest.mark.parametrize("names", [CACHE, ("scratch",)])
def test_a_folder_of_the_user_is_never_taken_for_the_cache(harness, write_repro, tmp_path, names):
    """Although it has folders that are called like those of the cache."""
    write_repro("brittle")
    mine = tmp_path / "mine"
    files = [mine / name / "thesis" / "chapter.txt" for name in names] + [mine / name / "notes.txt" for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("years of work")
    for command in (("probe", "brittle_step"), ("clean",), ("doctor",)):
        ended = harness(*command, HARNESS_CACHE_DIR=str(mine))
        assert (ended.code, "Traceback" in ended.stderr) == (1 if command == ("doctor",) else 2, False)
        assert all(file.exists() for file in files)


def test_what_is_behind_a_link_is_not_removed(own, tmp_path):
    mine, cache = tmp_path / "mine", tmp_path / "cache"
    (mine / "sub").mkdir(parents=True)
    (mine / "sub" / "thesis.txt").write_text("years of work")
    mine.chmod(0o755)
    for name in ("environments", "wheels", "trees", "index", "scratch", "building", "downloads", "projects"):
        (cache / name).mkdir(exist_ok=True)
        (cache / name / "linked").symlink_to(mine)
    assert own("clean").code == 0
    (cache / "scratch" / "linked").unlink()
    (cache / "scratch").rmdir()
    (cache / "scratch").symlink_to(mine)
    assert own("clean").code == 2
    assert (mine / "sub" / "thesis.txt").exists()
    assert mine.stat().st_mode & 0o777 == 0o755
