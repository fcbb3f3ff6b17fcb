"""On a file system that clones files, environments share blocks with the wheel store but no inode.

The file system is an image that the test makes and mounts: this needs root, loop devices, and mkfs.btrfs or mkfs.xfs.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from attrs import evolve
from support import make_parts, repro_text

from harness.environment import Environment, PipSettings
from harness.environment.disk_space import kept_folders, prune_wheels
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe

MIB = 2**20
MAKERS = (("mkfs.btrfs", "-q"), ("mkfs.xfs", "-q", "-m", "reflink=1"))
IN_PLACE = "import heavy\nwith open(heavy.__file__, 'r+') as file:\n    file.write('NUMBER = 7')\n"


@pytest.fixture(scope="module")
def cloning(tmp_path_factory):
    """An empty folder on a file system that clones files."""
    maker = next((words for words in MAKERS if shutil.which(words[0])), None)
    if maker is None or os.geteuid() != 0:
        pytest.skip("needs root and mkfs.btrfs or mkfs.xfs")
    folder = tmp_path_factory.mktemp("cloning")
    image, mounted = folder / "image", folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(3072 * MIB)  # a sparse file; the harness leaves some space free
    for words in ((*maker, image), ("mount", "-o", "loop", image, mounted)):
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            pytest.skip(f"{words[0]}: {ended.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


@pytest.fixture
def cloned(cloning, house, uv_cache, interpreter):
    """The parts of a probe with their cache there, and a wheel of 16 MiB that does not compress."""
    files = {"heavy.py": "NUMBER = 1\n" + "".join(f"# {os.urandom(60).hex()}\n" for _ in range(16 * MIB // 123))}
    house.add("heavy", "1.0", files=files)
    folder = cloning / os.urandom(4).hex()
    folder.mkdir()
    return make_parts(folder, PipSettings(index_url=house.url), uv_cache, interpreter)


def probe(parts, body, *requirements):
    repro = parse_repro(repro_text("heavy", body=body), name="x")
    return Probe(repro, Combination(parts.resolver.interpreter.version, ("heavy==1.0", *requirements)))


def heavy(parts, *requirements):
    """The installed module in the environment of these requirements."""
    built = parts.builder.build(parts.resolver.resolve(probe(parts, "", *requirements).combination).lock)
    assert isinstance(built, Environment)
    return site_packages(built.folder) / "heavy.py"


def free(folder):
    os.sync()
    seen = os.statvfs(folder)
    return seen.f_bfree * seen.f_frsize


def test_environments_share_blocks_and_no_inode(cloned):
    first = heavy(cloned)
    before = free(first)
    second = heavy(cloned, "helper==1.0")
    assert first.stat().st_ino != second.stat().st_ino
    assert (first.stat().st_nlink, second.stat().st_nlink) == (1, 1)
    assert first.read_bytes() == second.read_bytes()
    assert before - free(second) < 8 * MIB


def test_a_write_in_place_reaches_no_other_environment_and_is_reported(cloned):
    other = heavy(cloned, "helper==1.0")
    seen = cloned.prober.execute(cloned.prober.prepare(probe(cloned, IN_PLACE)))
    assert seen.outcome is Outcome.COMPLETED, seen.detail
    assert [name.rpartition("/")[2] for name in seen.altered] == ["heavy.py"]
    assert other.read_text(encoding="utf-8").startswith("NUMBER = 1")
    clean = probe(cloned, "import heavy\nassert heavy.NUMBER == 1\n")
    again = cloned.prober.execute(cloned.prober.prepare(evolve(clean, attempt=1)))
    assert (again.outcome, again.altered) == (Outcome.COMPLETED, ())


def test_wheels_of_environments_that_clone_them_are_kept(cloned):
    heavy(cloned)
    assert prune_wheels(cloned.workspace) == 0
    (kept,) = kept_folders(cloned.workspace)
    kept.location.discard()
    assert prune_wheels(cloned.workspace) > 0
