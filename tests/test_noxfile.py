"""What `nox` does here: it lists the cells of matrices, runs them, and shows their verdicts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEST_COMMAND = "python -m pip install '.[test]' && python -m pytest"
MATRIX = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.5", "1.6"]
"""


@pytest.fixture
def nox(harness, write_repro):
    """Run nox in a folder with this noxfile, one repro, and matrices by name."""
    shutil.copy(ROOT / "noxfile.py", harness.folder)
    (harness.folder / "harness").symlink_to(ROOT / "harness")
    write_repro("brittle")

    def run(*words: str, **matrices: str) -> subprocess.CompletedProcess[str]:
        folder = harness.folder / "matrices"
        folder.mkdir(exist_ok=True)
        for name, text in matrices.items():
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "nox", "--no-venv", "--no-install", "--nocolor", *words],
            cwd=harness.folder,
            env={**os.environ, **harness.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run


def test_a_plain_nox_runs_tests_lint_and_types(nox):
    listed = nox("-l", tiny=MATRIX).stdout
    assert re.findall(r"^\* (\S+)", listed, re.MULTILINE) == ["tests", "lint", "types"]


def test_each_cell_is_a_session_that_can_be_selected(nox):
    """Cells are listed by name, and chosen by a keyword."""
    assert "matrix(tiny:brittle_step-brittle-1.5)" in nox("-l", tiny=MATRIX).stdout
    listed = nox("-l", "-s", "matrix", "-k", "brittle_1_6").stdout
    chosen = [line for line in listed.splitlines() if line.startswith("* matrix(")]
    assert [line.split()[1] for line in chosen] == ["matrix(tiny:brittle_step-brittle-1.6)"]


def test_bad_is_an_answer_and_the_verdicts_are_shown_at_the_end(nox):
    ended = nox("-s", "matrix", tiny=MATRIX)
    assert ended.returncode == 0, ended.stdout
    assert "bad RuntimeError: the step is broken" in ended.stdout
    table = ended.stdout.partition("brittle  verdict\n")[2].splitlines()[:2]
    assert [line.split() for line in table] == [["1.5", "good"], ["1.6", "bad"]]


def test_the_table_keeps_verdicts_of_cells_that_did_not_run_this_time(nox):
    nox("-s", "matrix(tiny:brittle_step-brittle-1.6)", tiny=MATRIX)
    ended = nox("-s", "matrix_report")
    table = ended.stdout.partition("brittle  verdict\n")[2].splitlines()[:2]
    assert [line.split() for line in table] == [["1.5", "-"], ["1.6", "bad"]]


def test_a_cell_without_a_verdict_fails_and_the_others_run(nox):
    """A repro that does not exist is a mistake in the matrix, not a verdict."""
    text = MATRIX.replace('"brittle_step"', '["no_such_repro", "brittle_step"]')
    ended = nox("-s", "matrix", "-k", "brittle_1_6", tiny=text)
    assert ended.returncode == 1
    assert "no repro named 'no_such_repro'" in ended.stdout
    assert "bad RuntimeError: the step is broken" in ended.stdout


def test_a_broken_matrix_fails_by_itself_and_says_why(nox):
    """The other sessions, and the cells of other files, are there all the same."""
    ended = nox("-s", "matrix(broken)", broken="axes.repro = []", tiny=MATRIX)
    assert ended.returncode == 1
    assert "axes.repro has no values" in ended.stdout
    assert "matrix(tiny:brittle_step-brittle-1.5)" in nox("-l").stdout


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_the_test_command_is_the_same_everywhere(name):
    assert TEST_COMMAND in (ROOT / name).read_text(encoding="utf-8")


def test_the_checks_of_ci_are_those_of_nox():
    """What one of them runs, the other runs too."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("ruff check .", "ruff format --check .", "lint-imports", "mypy"):
        assert re.search(rf"^part .*{re.escape(command)}$", script, re.MULTILINE), command
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
