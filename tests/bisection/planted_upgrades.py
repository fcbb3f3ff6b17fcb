"""A house of a dozen small packages with planted faults, and a project whose tests meet them."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from support import Harness
from wheelhouse import Wheelhouse

COUNT = 12
NAMES = [f"part{i:02}" for i in range(COUNT)]
RELEASES = ["1.0", "1.1", "1.2", "2.0", "2.1"]
# For tests that are about packages and releases: what is below a release, and repetitions, have tests of their own.
TO_THE_RELEASE = ("--depth", "release", "--confirm", "1")


def month(number: int) -> str:
    return f"2024-{number + 1:02}-01T12:00:00Z"


def source(version: str, *, broken: str = "") -> str:
    body = f"raise RuntimeError({broken!r})" if broken else f"return {version!r}"
    return f"VERSION = {version!r}\n\ndef work():\n    {body}\n"


@pytest.fixture(scope="session")
def parts_house(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """Packages with five releases each. part07 is broken from 2.0 on, part09 from 1.2 on."""
    house = Wheelhouse(tmp_path_factory.mktemp("parts"))
    for name in NAMES:
        for number, version in enumerate(RELEASES):
            broken = ""
            if name == "part07" and number >= 3:
                broken = "part07 is broken"
            if name == "part09" and number >= 2:
                broken = "the ninth is broken"
            files = {f"{name}.py": source(version, broken=broken)}
            house.add(name, version, files=files, uploaded=month(number))
    return house


@pytest.fixture
def planted(harness: Harness, parts_house: Wheelhouse) -> Harness:
    """The command with that house as its only index."""
    return harness.with_environ(**parts_house.environ)


def freeze(path: Path, *, release: str, names: list[str] | None = None, **others: str) -> Path:
    """A file as pip freeze writes it, each package at one release."""
    lines = [f"{name}=={others.get(name, release)}" for name in names or NAMES]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_project(folder: Path, tests: str, *, requires: list[str] | None = None, name: str = "mine") -> Path:
    """A project that git knows, with a package and tests for unittest."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ", ".join(f'"{text}"' for text in requires or [])
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "1.0"\ndependencies = [{lines}]\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        encoding="utf-8",
    )
    (folder / "backend.py").write_text(BACKEND.replace("@NAME@", name), encoding="utf-8")
    (folder / f"{name}.py").write_text("ANSWER = 42\n", encoding="utf-8")
    (folder / "test_mine.py").write_text(textwrap.dedent(tests), encoding="utf-8")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def suite_of(*names: str) -> str:
    """A test for each of these packages, and one that needs nothing."""
    lines = ["import unittest", "import mine", "", "class T(unittest.TestCase):"]
    lines += ["    def test_own(self):", "        self.assertEqual(mine.ANSWER, 42)"]
    for name in names:
        lines += [f"    def test_{name}(self):", f"        import {name}", f"        {name}.work()"]
    return "\n".join(lines) + "\n"


# A build backend of its own (PEP 517): the house has no setuptools.
BACKEND = """
import pathlib, tomllib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    requires = "".join(f"Requires-Dist: {text}\\n" for text in project["dependencies"])
    with zipfile.ZipFile(pathlib.Path(folder, "@NAME@-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.write("@NAME@.py")
        inside = "@NAME@-1.0.dist-info"
        wheel.writestr(f"{inside}/METADATA", f"Metadata-Version: 2.1\\nName: @NAME@\\nVersion: 1.0\\n{requires}")
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{inside}/RECORD", "")
    return "@NAME@-1.0-py3-none-any.whl"
"""
