"""Mixtures: the files that were asked for and no others, and nothing written through a shared file."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from harness.environment import Environment, Mixer, Uninstallable
from harness.environment.build import site_packages
from harness.model import Combination, Mixture

FILES = {
    "pack/__init__.py": "from pack.one import NAME\n",
    "pack/one.py": "NAME = 'one'\n",
    "pack/data/table.txt": "1 2 3\n",
    "single.py": "NAME = 'single'\n",
}


@pytest.fixture
def base(parts, house, interpreter):
    """A finished environment with a package, a module and some metadata."""
    house.add("pack", "1.0", files=FILES)
    found = parts.resolver.resolve(Combination(interpreter.version, ("pack==1.0", "helper==1.0")))
    built = parts.builder.build(found.lock)
    assert isinstance(built, Environment)
    return built


@pytest.fixture
def mixer(parts):
    """What builds mixtures of it."""
    return Mixer(parts.workspace)


def said(environment, code):
    """What an interpreter of the environment prints, run as a probe is."""
    ended = subprocess.run(
        [environment.python, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(environment.pycache), "PYTHONDONTWRITEBYTECODE": ""},
    )
    return ended.stdout.strip() or ended.stderr.strip().splitlines()[-1]


def contents(environment):
    return {
        path.relative_to(environment.folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in environment.folder.rglob("*")
        if path.is_file()
    }


def test_a_file_is_exchanged_and_the_others_are_those_of_the_base(base, mixer):
    mixed = mixer.build(base, Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file"))
    assert said(mixed, "import pack, helper, single; print(pack.NAME, helper.NUMBER, single.NAME)") == "two 1 single"
    assert said(base, "import pack; print(pack.NAME)") == "one"


def test_a_top_level_module_is_exchanged_even_if_it_was_compiled_before(base, mixer):
    assert said(base, "import single; print(single.NAME)") == "single"
    mixed = mixer.build(base, Mixture({"single.py": b"NAME = 'double'\n"}, "one module"))
    assert said(mixed, "import single; print(single.NAME)") == "double"


def test_the_base_is_not_touched_by_building_or_running(base, mixer):
    before = contents(base)
    changed = {
        "pack/one.py": b"NAME = 'two'\n",
        "pack/data/table.txt": b"4\n",
        "pack/new/deep.py": b"",
        "single.py": None,
        "pack-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: pack\nVersion: 7.0\n",
    }
    mixed = mixer.build(base, Mixture(changed, "many files"))
    assert said(mixed, "import pack.new.deep; from importlib.metadata import version; print(version('pack'))") == "7.0"
    assert "No module named 'single'" in said(mixed, "import single")
    assert contents(base) == before


def test_a_folder_that_is_emptied_is_gone(base, mixer):
    """Else it would be found as a namespace package, or as metadata without a version."""
    gone = {"pack/data/table.txt": None} | {
        f"pack-1.0.dist-info/{path.name}": None
        for path in (site_packages(base.folder) / "pack-1.0.dist-info").iterdir()
    }
    mixed = mixer.build(base, Mixture(gone, "without data and metadata"))
    packages = site_packages(mixed.folder)
    assert not (packages / "pack" / "data").exists()
    assert not (packages / "pack-1.0.dist-info").exists()
    assert (packages / "pack" / "one.py").is_file()
    assert "PackageNotFoundError" in said(mixed, "from importlib.metadata import version; version('pack')")


def test_the_same_mixture_is_built_once(base, mixer):
    mixture = Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file")
    first = mixer.build(base, mixture)
    marked = first.folder / "marked"
    marked.touch()
    assert mixer.build(base, mixture).folder == first.folder
    assert marked.exists()


def test_what_is_no_python_is_told_before_a_run(base, mixer):
    broken = mixer.build(base, Mixture({"pack/one.py": b"def broken(:\n"}, "broken"))
    assert isinstance(broken, Uninstallable)
    assert "pack/one.py" in broken.words
    flawed = mixer.build(base, Mixture({"pack/one.py": b"x\n"}, "flawed", flaw="it leaves x undefined"))
    assert flawed == Uninstallable("it leaves x undefined")


def test_an_environment_of_somebody_else_is_not_mixed(base, mixer):
    with pytest.raises(ValueError, match="that the harness has built"):
        mixer.build(Environment(base.python, base.lock), Mixture({}, "none"))
