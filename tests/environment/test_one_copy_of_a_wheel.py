"""A wheel is on the disk once: it is downloaded to the harness's cache and moved to the wheel store."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from support import Heard, make_parts
from wheelhouse import Wheelhouse

from harness.environment import DiskSpace, Environment, PipSettings
from harness.environment.disk_space import kept_folders, own_bytes, remove_leftovers
from harness.environment.workspace import site_packages
from harness.errors import NoSpace
from harness.model import Combination
from harness.run.locks import acquire

MIB = 2**20
SIZE = 4 * MIB


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """An index with a wheel that does not compress."""
    house = Wheelhouse(tmp_path_factory.mktemp("heavy"))
    for version in ("1.0", "2.0"):
        house.add("heavy", version, files={"heavy.py": "NUMBER = 1\n", "heavy.bin": os.urandom(SIZE // 2).hex()})
        house.add("light", version)
    return house


@pytest.fixture
def parts(tmp_path, heavy, interpreter):
    """The parts of a probe; uv's cache is empty."""
    return make_parts(tmp_path, PipSettings(index_url=heavy.url), tmp_path / "uv", interpreter)


def lock_of(parts, *requirements):
    return parts.resolver.resolve(Combination(parts.resolver.interpreter.version, requirements)).lock


def built(parts, *requirements):
    environment = parts.builder.build(lock_of(parts, *requirements))
    assert isinstance(environment, Environment), environment
    return environment


def installed_by_hand(tmp_path, heavy, interpreter, requirement):
    """Put a wheel into uv's cache, as a user's `uv pip install` does."""
    uv = make_parts(tmp_path / "hand", PipSettings(index_url=heavy.url), tmp_path / "uv", interpreter).builder.uv
    target = tmp_path / "by hand"
    answer = uv.call("pip", "install", "--target", target, "--python", interpreter.path, requirement, cwd=tmp_path)
    assert answer.returncode == 0, answer.words
    shutil.rmtree(target)


def test_a_wheel_is_on_the_disk_once(parts, tmp_path):
    made = built(parts, "heavy==1.0")
    assert own_bytes(tmp_path) < 2 * SIZE
    assert list(tmp_path.glob("uv/**/heavy.bin")) == []
    assert (site_packages(made.folder) / "heavy.bin").stat().st_nlink == 2  # in the store and here
    built(parts, "heavy==1.0", "light==1.0")
    assert own_bytes(tmp_path) < 2 * SIZE
    assert list(parts.workspace.downloads.iterdir()) == []


def test_a_wheel_that_environments_share_counts_for_the_last_used(parts):
    """Otherwise nearly all of a large cache would count for none of them, and its limit would remove nothing."""
    first, last = built(parts, "heavy==1.0"), built(parts, "heavy==1.0", "light==1.0")
    for age, made in ((20, first), (10, last)):
        moment = time.time() - age
        os.utime(made.folder, (moment, moment))
    kept = list(kept_folders(parts.workspace))
    assert [one.location.folder for one in kept] == [first.folder, last.folder]
    assert kept[0].size < SIZE <= kept[1].size


def test_a_wheel_in_the_cache_of_uv_is_taken_from_there(parts, tmp_path, heavy, interpreter):
    installed_by_hand(tmp_path, heavy, interpreter, "heavy==1.0")
    before = {path: path.lstat().st_ino for path in (tmp_path / "uv").rglob("heavy.bin")}
    assert before
    lock = lock_of(parts, "heavy==1.0", "light==1.0")
    wheel = next(heavy.root.rglob("heavy-1.0*.whl"))
    wheel.rename(tmp_path / wheel.name)
    try:
        made = parts.builder.build(lock)
    finally:
        (tmp_path / wheel.name).rename(wheel)
    assert isinstance(made, Environment), made
    assert {path: path.lstat().st_ino for path in (tmp_path / "uv").rglob("heavy.bin")} == before
    assert (site_packages(made.folder) / "heavy.bin").stat().st_ino not in before.values()


def test_a_new_environment_is_read_once(parts):
    """Its files were read when they were stored; the comparison before the first run knows them."""
    made = built(parts, "heavy==1.0", "light==1.0")
    module = site_packages(made.folder) / "heavy.bin"
    assert parts.builder.wheels.ledger.known({"heavy.bin": module.lstat()})


def test_the_limit_holds_for_all_that_is_kept(parts, tmp_path):
    heard = Heard()
    disk_space = DiskSpace(parts.workspace, 2 * SIZE + 130 * MIB, heard)
    builder = evolve(parts.builder, disk_space=disk_space, size_of=lambda pin: SIZE // 2)
    for version in ("1.0", "2.0"):
        with pytest.raises(NoSpace, match="of --max-disk") if version == "2.0" else contextlib.nullcontext():
            assert isinstance(builder.build(lock_of(parts, f"heavy=={version}")), Environment)
    assert own_bytes(tmp_path) < 2 * SIZE


def test_a_download_that_was_killed_goes_on(parts, tmp_path):
    """The wheels that were there already are not fetched again, also if nobody could tidy up."""
    lock = lock_of(parts, "heavy==1.0", "light==1.0")
    left = parts.workspace.downloads / lock.id
    uv = parts.builder.uv
    (tmp_path / "half.txt").write_text(lock.as_requirements())
    answer = uv.call(
        *("pip", "install", "--no-deps", "--cache-dir", left, "--target", tmp_path / "half"),
        *("--python", parts.resolver.interpreter.path, "--requirements", tmp_path / "half.txt"),
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.words
    inode = next(left.rglob("heavy.bin")).lstat().st_ino
    remove_leftovers(parts.workspace)  # as each command does when it begins
    shutil.rmtree(tmp_path / "half")
    made = parts.builder.build(lock)
    assert (site_packages(made.folder) / "heavy.bin").lstat().st_ino == inode
    assert not left.exists()


def test_old_downloads_are_removed_but_never_those_in_use(parts):
    old, used = (parts.workspace.downloads / name for name in ("old", "used"))
    moment = time.time() - timedelta(days=2).total_seconds()
    for folder in (old, used):
        folder.mkdir()
        os.utime(folder, (moment, moment))
    with acquire(used):
        remove_leftovers(parts.workspace)
        assert not old.exists()
        assert used.exists()


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support import make_parts
from harness.environment import PipSettings, find_interpreter
from harness.environment.wheel_store import WheelStore
from harness.model import Combination
from harness.run.locks import acquire

folder, url = Path(sys.argv[2]), sys.argv[3]
from harness.environment import Uv
interpreter = find_interpreter(None, Uv(PipSettings(), extra_environment={"UV_CACHE_DIR": str(folder / "uv")}))
parts = make_parts(folder, PipSettings(index_url=url), folder / "uv", interpreter)
lock = parts.resolver.resolve(Combination(interpreter.version, ("heavy==1.0", "light==1.0"))).lock
take_in = WheelStore.take_in

def killed(self, pins, stage):
    take_in(self, pins, stage)
    os.kill(os.getpid(), 9)

WheelStore.take_in = killed
parts.builder.build(lock)
"""


def test_a_killed_build_leaves_nothing_wrong(parts, tmp_path, heavy):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    here = Path(__file__).parents[1]
    ended = subprocess.run([sys.executable, script, here, tmp_path, heavy.url], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    remove_leftovers(parts.workspace)
    made = built(parts, "heavy==1.0", "light==1.0")
    assert (site_packages(made.folder) / "heavy.py").read_text() == "NUMBER = 1\n"
    assert own_bytes(tmp_path) < 2 * SIZE
    assert list(parts.workspace.building.iterdir()) == list(parts.workspace.downloads.rglob("heavy*")) == []


def test_two_wheels_with_one_file_are_both_stored(tmp_path, interpreter):
    """Such as the empty `__init__.py` of a package that several projects share."""
    house = Wheelhouse(tmp_path / "house")
    for name in ("one", "two"):
        house.add(name, "1.0", files={"shared/__init__.py": "", f"shared/{name}.py": "NUMBER = 1\n"})
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), tmp_path / "uv", interpreter)
    made = built(parts, "one==1.0", "two==1.0")
    assert all((site_packages(made.folder) / "shared" / name).exists() for name in ("__init__.py", "one.py", "two.py"))
    for name in ("one", "two"):
        alone = built(parts, f"{name}==1.0")
        assert (site_packages(alone.folder) / "shared" / "__init__.py").exists()
