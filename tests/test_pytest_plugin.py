"""`pytest --harness-bisect` goes on with the tests that failed, and costs nothing where nobody asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support import ROOT, Harness

# pytest loads the plugin of an installed harness by itself, and no plugin twice.
IS_INSTALLED = any(found.value == "harness.pytest_plugin" for found in entry_points(group="pytest11"))
TESTS = """
import unittest
import brittle

def test_step(): brittle.step()
def test_number(): assert brittle.NUMBER >= 0
"""


@pytest.fixture
def run(harness: Harness, uv_cache: Path):
    """Run pytest with the plugin as an installed one, in a project whose newest `stale` is broken."""
    (harness.folder / "test_it.py").write_text(TESTS.replace("brittle", "edgy"), encoding="utf-8")
    (harness.folder / "edgy.py").write_text("NUMBER = 1\ndef step(): raise RuntimeError('here')\n", encoding="utf-8")

    def start(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), **harness.environ, **environ}
        plugin = () if IS_INSTALLED else ("-p", "harness.pytest_plugin")
        told = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *words]
        return subprocess.run(told, cwd=harness.folder, env=env, capture_output=True, text=True, check=False)

    return start


def test_it_is_found_by_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"harness": "harness.pytest_plugin"}


def test_it_asks_about_the_tests_that_failed(run) -> None:
    ended = run("--harness-bisect", "--harness-options=--good 2023-01-15 --good")
    assert ended.returncode == 1
    assert "looking for the upgrade that broke pytest test_it.py::test_step\n" in ended.stdout
    # What comes next is the harness's own.
    assert "Error: Option '--good' requires an argument" in ended.stderr


def test_a_module_that_fails_to_import_counts(run, harness: Harness) -> None:
    (harness.folder / "edgy.py").write_text("raise ImportError('gone')\n", encoding="utf-8")
    ended = run("--harness-bisect", "--harness-options=--good")
    assert "looking for the upgrade that broke pytest test_it.py\n" in ended.stdout


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        ((), {}),
        (("--harness-bisect", "-k", "number"), {}),
        (("--harness-bisect",), {"HARNESS_ROOT": "/a/probe"}),
    ],
    ids=["not asked", "green", "in a probe"],
)
def test_otherwise_it_does_nothing(run, words: tuple[str, ...], environ: dict[str, str]) -> None:
    ended = run(*words, **environ)
    assert "harness bisect" not in ended.stdout + ended.stderr
    assert ended.returncode == (0 if "-k" in words else 1)


def test_it_imports_nothing_of_the_harness() -> None:
    said = (
        "import sys, harness.pytest_plugin; print(sorted(m for m in sys.modules if m.startswith(('harness', 'attrs'))))"
    )
    ended = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout == "['harness', 'harness._version', 'harness.pytest_plugin']\n"
