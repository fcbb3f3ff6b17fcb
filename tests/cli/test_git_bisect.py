"""Probes of commits in a repository: `--with "shop @ ./clone@1a2b3c4"`, and as the command of `git bisect run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from git_project import GitProject, new_project
from support import ROOT, Harness

PYPROJECT = """
[project]
name = "shop"
version = "0.1"
dependencies = ["helper"]
"""
STEP = "import helper\n\n\ndef step():\n    return {0}\n"
BROKEN = "import helper\n\n\ndef step():\n    raise RuntimeError('the step is broken')\n"


@pytest.fixture
def clone(tmp_path: Path) -> GitProject:
    """A project missing from the index, with one commit for each file."""
    project = new_project(tmp_path / "clone")
    project.commit("Begin", {"pyproject.toml": PYPROJECT, "shop.py": STEP.format(0)})
    return project


def test_a_probe_runs_a_commit_with_what_it_needs(harness: Harness, clone: GitProject, write_repro) -> None:
    repro = write_repro("shop")
    older = clone.git("rev-parse", "HEAD")
    clone.commit("Rework the step", {"shop.py": BROKEN})
    good = harness("probe", repro, "--with", f"shop @ {clone.folder}@{older[:8]}", "--json")
    assert (good.code, good.json["outcome"]) == (0, "completed")
    assert harness("probe", repro, "--with", f"shop @ {clone.folder}@main").code == 1
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("rev-parse", "HEAD") == clone.git("rev-parse", "main")


def test_the_needs_of_a_folder_do_not_replace_pins_of_the_repro(
    harness: Harness, clone: GitProject, write_repro
) -> None:
    """The commit accepts any `helper` and the repro pins one; a pin given by name still counts more."""
    repro = write_repro(
        "shop", dependencies='["shop", "helper==1.0"]', body="import helper\nassert helper.NUMBER == 1\n"
    )
    commit = ("--with", f"shop @ {clone.folder}@main")
    assert harness("probe", repro, *commit).code == 0
    installed = harness("probe", repro, *commit, "--with", "helper==2.0", "--json").json["lock"]["pins"]
    assert [(pin["name"], pin["version"]) for pin in installed] == [("helper", "2.0")]


def test_a_missing_commit_is_refused(harness: Harness, clone: GitProject, write_repro) -> None:
    ended = harness("probe", write_repro("shop"), "--with", f"shop @ {clone.folder}@nowhere")
    assert ended.code == 2
    assert "nowhere" in ended.stderr


@pytest.mark.parametrize("mistake", [("nothing_of_this_name",), ("--no-such-option",), ("{repro}", "--with", "=x")])
def test_a_mistake_stops_the_bisection_without_a_bad_commit(
    harness: Harness, write_repro, mistake: tuple[str, ...]
) -> None:
    repro = str(write_repro("shop"))
    assert harness("probe", *(word.format(repro=repro) for word in mistake), "--git-bisect").code > 127


def test_git_bisect_run_finds_the_commit(harness: Harness, clone: GitProject, write_repro) -> None:
    repro = write_repro("shop")
    first = clone.git("rev-parse", "HEAD")
    clone.commit("Count", {"shop.py": STEP.format(1)})
    clone.commit("Forget a module", {"shop.py": "import a_module_that_is_missing\n"})
    clone.commit("Count again", {"shop.py": STEP.format(2)})
    guilty = clone.commit("Rework the step", {"shop.py": BROKEN})
    clone.commit("Say more", {"shop.py": f"{BROKEN}# more\n"})
    clone.git("bisect", "start", "HEAD", first)
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("UV_", "PIP_", "HARNESS_"))}
    ended = subprocess.run(
        ["git", "bisect", "run", sys.executable, "-m", "harness", "probe", str(repro), "--with", "shop @ .",
         "--git-bisect", "--results", str(harness.folder / "results")],
        cwd=clone.folder, env={**kept, **harness.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"{guilty} is the first bad commit" in ended.stdout, ended.stdout + ended.stderr
