"""Mixtures contain exactly the chosen files, and nothing is written through a shared file."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import venv

import pytest

from harness.environment import Environment, copy_folders, flaw_of, watched_environment
from harness.environment.watched import build_mixture, copied_environment, exchange
from harness.environment.workspace import site_packages
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
def mixed(parts, base):
    """The output of an interpreter of the base with some files exchanged, run like a probe."""

    def run(mixture, code):
        with watched_environment(parts.builder, base, mixture=mixture) as place:
            return said(place, code)

    return run


def said(place, code):
    """The output of an interpreter of the environment, run like a probe."""
    ended = subprocess.run(
        [place.environment.python, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(place.pycache), "PYTHONDONTWRITEBYTECODE": ""},
    )
    return ended.stdout.strip() or ended.stderr.strip().splitlines()[-1]


def contents(environment):
    return {
        path.relative_to(environment.folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in environment.folder.rglob("*")
        if path.is_file()
    }


def test_only_the_chosen_file_is_exchanged(mixed):
    mixture = Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file")
    assert mixed(mixture, "import pack, helper, single; print(pack.NAME, helper.NUMBER, single.NAME)") == "two 1 single"
    assert mixed(None, "import pack; print(pack.NAME)") == "one"


def test_a_top_level_module_is_exchanged_even_if_compiled_before(parts, base, mixed):
    with watched_environment(parts.builder, base) as place:
        assert said(place, "import single; print(single.NAME)") == "single"
        assert place.altered() == ()
    assert list(parts.workspace.wheels.rglob("single.*.pyc"))
    mixture = Mixture({"single.py": b"NAME = 'double'\n"}, "one module")
    assert mixed(mixture, "import single; print(single.NAME)") == "double"


def test_building_and_running_leave_the_base_unchanged(base, mixed):
    before = contents(base)
    changed = {
        "pack/one.py": b"NAME = 'two'\n",
        "pack/data/table.txt": b"4\n",
        "pack/new/deep.py": b"",
        "single.py": None,
        "pack-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: pack\nVersion: 7.0\n",
    }
    many = Mixture(changed, "many files")
    assert mixed(many, "import pack.new.deep; from importlib.metadata import version; print(version('pack'))") == "7.0"
    assert "No module named 'single'" in mixed(many, "import single")
    assert contents(base) == before


def test_an_emptied_folder_is_removed(parts, base):
    """Otherwise it would be found as a namespace package, or as metadata without a version."""
    gone = {"pack/data/table.txt": None} | {
        f"pack-1.0.dist-info/{path.name}": None
        for path in (site_packages(base.folder) / "pack-1.0.dist-info").iterdir()
    }
    with watched_environment(parts.builder, base, mixture=Mixture(gone, "without data and metadata")) as place:
        packages = site_packages(place.environment.folder)
        assert not (packages / "pack" / "data").exists()
        assert not (packages / "pack-1.0.dist-info").exists()
        assert (packages / "pack" / "one.py").is_file()
        assert "PackageNotFoundError" in said(place, "from importlib.metadata import version; version('pack')")


def test_two_runs_of_a_mixture_get_a_copy_each_and_leave_none(parts, base):
    mixture = Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file")
    with watched_environment(parts.builder, base, mixture=mixture) as first:
        with watched_environment(parts.builder, base, mixture=mixture) as second:
            assert first.environment.folder != second.environment.folder
        assert said(first, "import pack; print(pack.NAME)") == "two"
    assert list(parts.workspace.scratch.iterdir()) == []


def test_writes_into_a_mixture_are_reported_and_never_reach_the_base(parts, base):
    """Exchanged packages are copies; the others belong to the base, where the change is found."""
    mixture = Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file")
    before = contents(base)
    with watched_environment(parts.builder, base, mixture=mixture) as place:
        said(place, "import pack; open(pack.__file__, 'a').write('# changed'); print(1)")
        altered = place.altered()
    assert [path.rpartition("site-packages/")[2] for path in altered] == ["pack/__init__.py"]
    assert contents(base) == before
    with watched_environment(parts.builder, base, mixture=mixture) as place:
        said(place, "import single; open(single.__file__, 'a').write('# changed'); print(1)")
        altered = place.altered()
    assert [path.rpartition("site-packages/")[2] for path in altered] == ["single.py"]
    assert contents(base) == before


def test_code_that_follows_links_in_its_path_stays_in_the_mixture(mixed, base):
    table = "import pathlib, pack; p = pathlib.Path(pack.__file__).parent / 'data' / 'table.txt'; q = p.resolve()"
    mixture = Mixture({"pack/one.py": b"NAME = 'two'\n"}, "one file")
    assert mixed(mixture, f"{table}; print((q.parents[1] / 'one.py').read_text())") == "NAME = 'two'"
    before = contents(base)
    mixed(mixture, f"{table}; print(q.write_text('changed'))")
    assert contents(base) == before


def test_a_copy_of_a_mixture_keeps_its_files_when_those_of_the_other_are_replaced(parts, base, interpreter):
    code = "import pack.one, single; print(pack.one.NAME, single.NAME, pack.one.__file__)"
    mixture = Mixture(files={"pack/one.py": b"NAME = 'two'\n"}, label="m")
    with watched_environment(parts.builder, base, mixture=mixture) as place:
        with copied_environment(place, interpreter.stdlib, parts.workspace.scratch) as copy:
            exchange(site_packages(copy.environment.folder), "pack/one.py", b"NAME = 'three'\n")
            words = said(copy, code)
            assert words == f"three single {site_packages(copy.environment.folder)}/pack/one.py"
            assert said(place, code).startswith("two single")
        assert not copy.environment.folder.exists()


def test_copying_folders_ends_with_the_number_of_the_systems_error(tmp_path):
    words = [sys.executable, copy_folders.__file__, tmp_path / "missing", tmp_path / "target"]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (errno.ENOENT, f"{tmp_path}/missing: No such file or directory\n")


def test_an_invalid_mixture_is_reported_before_a_run(base):
    broken = Mixture({"pack/one.py": b"def broken(:\n"}, "broken")
    assert "pack/one.py" in flaw_of(broken, base.lock.python)
    assert flaw_of(Mixture({"pack/one.py": b"x\n"}, "flawed", flaw="it leaves x undefined"), "3.11.0") == (
        "it leaves x undefined"
    )


def test_a_script_runs_the_exchanged_files_of_its_mixture(tmp_path):
    base, folder = tmp_path / "base", tmp_path / "mixture"
    venv.create(base, symlinks=True)
    (site_packages(base) / "tool.py").write_text("print('as built')\n")
    script = base / "bin" / "tool"
    script.write_text(
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\nimport tool\n"
    )
    script.chmod(0o755)
    build_mixture(base, Mixture({"tool.py": b"print('exchanged')\n"}, "tool as it was"), folder)
    run = subprocess.run([folder / "bin" / "tool"], capture_output=True, text=True, check=True)
    assert run.stdout == "exchanged\n"
