"""`nox` lists the cells of matrices, runs them, and shows their verdicts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support import PATH
from wheelhouse import Wheelhouse, free_port_url

ROOT = Path(__file__).parent.parent
TEST_COMMAND = "python -m pip install '.[test]' && python -m pytest -n auto"
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

    def run(
        *words: str, environ: dict[str, str] | None = None, in_venvs: bool = False, **matrices: str
    ) -> subprocess.CompletedProcess[str]:
        folder = harness.folder / "matrices"
        folder.mkdir(exist_ok=True)
        for name, text in matrices.items():
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "nox",
                *(["-R"] if in_venvs else ["--no-venv", "--no-install"]),
                "--nocolor",
                *words,
            ],
            cwd=harness.folder,
            env={**os.environ, "PATH": PATH, **harness.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run


def test_a_plain_nox_runs_tests_lint_and_types(nox):
    listed = nox("-l", tiny=MATRIX).stdout
    assert re.findall(r"^\* (\S+)", listed, re.MULTILINE) == ["tests", "lint", "types"]


def test_each_cell_is_a_selectable_session(nox):
    """Cells are listed by name, and selected by a keyword; a plain list has only the session of all."""
    assert "matrix(tiny:brittle_step-brittle-1.5)" in nox("-l", "-s", "matrix", tiny=MATRIX).stdout
    assert re.findall(r"^- (matrix\S*) ", nox("-l").stdout, re.MULTILINE) == ["matrix", "matrix_report"]
    listed = nox("-l", "-s", "matrix", "-k", "brittle_1_6").stdout
    chosen = [line for line in listed.splitlines() if line.startswith("* matrix(")]
    assert [line.split()[1] for line in chosen] == ["matrix(tiny:brittle_step-brittle-1.6)"]


def test_a_bad_cell_passes_its_session_and_the_verdicts_are_shown(nox):
    ended = nox("-s", "matrix", tiny=MATRIX)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.startswith("2 cells, ")
    assert "bad RuntimeError: the step is broken" in ended.stdout
    table = ended.stdout.partition("brittle  verdict\n")[2].splitlines()[:2]
    assert [line.split() for line in table] == [["1.5", "good"], ["1.6", "bad"]]


def test_the_table_keeps_verdicts_of_earlier_runs(nox):
    nox("-s", "matrix(tiny:brittle_step-brittle-1.6)", tiny=MATRIX)
    ended = nox("-s", "matrix_report")
    table = ended.stdout.partition("brittle  verdict\n")[2].splitlines()[:2]
    assert [line.split() for line in table] == [["1.5", "-"], ["1.6", "bad"]]


def test_an_unjudged_cell_fails_its_session_and_the_others_run(nox):
    """A repro that does not exist is a mistake in the matrix, not a verdict."""
    text = MATRIX.replace('"brittle_step"', '["no_such_repro", "brittle_step"]')
    ended = nox("-s", "matrix", "-k", "brittle_1_6", tiny=text)
    assert ended.returncode == 1
    assert "no repro named 'no_such_repro'" in ended.stdout
    assert "bad RuntimeError: the step is broken" in ended.stdout


def test_only_matrices_of_which_cells_ran_have_a_table(nox):
    ended = nox("-s", "matrix(tiny:brittle_step-brittle-1.6)", tiny=MATRIX, other=MATRIX)
    assert ended.stdout.count("brittle  verdict\n") == 1


def test_a_broken_matrix_fails_alone_with_a_reason(nox):
    """Other sessions and the cells of other files are unaffected."""
    ended = nox("-s", "matrix(broken)", broken="axes.repro = []", tiny=MATRIX)
    assert ended.returncode == 1
    assert "axes.repro has no values" in ended.stdout
    assert "matrix(tiny:brittle_step-brittle-1.5)" in nox("-l", "-s", "matrix").stdout


def test_a_cell_leaves_its_environment_in_the_folder_of_nox(nox, harness):
    """It can be used afterwards; running the same cell again neither repeats nor rebuilds it."""
    mine = harness.folder / ".nox" / "harness"  # stands for the one that nox would install the harness into
    venv.create(mine, with_pip=False, symlinks=True)
    settings = mine / "pyvenv.cfg"
    settings.write_text(f"{settings.read_text()}uv = 0.9\n")  # nox takes it for its own
    packages = next(mine.glob("lib/python*/site-packages"))
    (packages / "tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    cell = "matrix(tiny:brittle_step-brittle-1.6)"
    ended = nox("-s", cell, in_venvs=True, tiny=MATRIX)
    assert "bad RuntimeError: the step is broken" in ended.stdout, ended.stdout
    python = Path(re.search(r"its environment: (\S+)", ended.stdout).group(1))
    assert python.is_relative_to(harness.folder / ".nox")
    seen = subprocess.run([python, "-c", "import brittle; print(brittle.NUMBER)"], capture_output=True, check=True)
    assert seen.stdout.strip() == b"6"
    made = (python.parent.parent / "pyvenv.cfg").stat()
    assert "bad RuntimeError" in nox("-s", cell, in_venvs=True).stdout
    assert (python.parent.parent / "pyvenv.cfg").stat() == made


@pytest.fixture
def newest(nox, tmp_path):
    """Run nox with a matrix of the newest releases of a growing index, without a cache."""
    house = Wheelhouse(tmp_path / "own")

    def run(*words: str, release: str = "", online: bool = True) -> list[str]:
        if release:
            house.add("brittle", release)
        cache = tmp_path / f"cache-{release}-{online}"
        environ = {**house.environ, "HARNESS_CACHE_DIR": str(cache)}
        if not online:
            environ["UV_DEFAULT_INDEX"] = free_port_url()
        ended = nox(*words, environ=environ, newest=MATRIX.replace('["1.5", "1.6"]', '"latest"'), tiny=MATRIX)
        return [line for line in ended.stdout.splitlines() if "newest" in line]

    return run


def test_index_lookups_are_cached_for_an_hour(newest, harness):
    """Every nox started by --parallel must see the same cells; offline, old ones are better than none."""
    assert "brittle_step-brittle-1.0)" in newest("-l", "-s", "matrix", release="1.0")[0]
    assert "brittle_step-brittle-1.0)" in newest("-l", "-s", "matrix", release="2.0")[0]
    (kept,) = (harness.folder / ".nox" / ".cache" / "cells").iterdir()
    os.utime(kept, (0, 0))
    assert "brittle_step-brittle-1.0)" in newest("-l", "-s", "matrix", online=False)[0]
    assert "brittle_step-brittle-2.0)" in newest("-l", "-s", "matrix")[0]


def test_other_sessions_look_nothing_up(newest, harness):
    newest("-s", "harness", release="1.0")
    assert not (harness.folder / ".nox" / ".cache" / "cells").exists()


def test_a_matrix_without_an_index_fails_alone(newest):
    said = newest("-s", "matrix(newest)", online=False)
    assert any("the package index" in line and "reached" in line for line in said), said


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_the_test_command_is_the_same_everywhere(name):
    assert TEST_COMMAND in (ROOT / name).read_text(encoding="utf-8")


def test_ci_and_nox_run_the_same_checks():
    """Each check of one is in the other."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("ruff check .", "ruff format --check .", "lint-imports", "mypy"):
        assert re.search(rf"^(part|beside) .*{re.escape(command)}$", script, re.MULTILINE), command
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
