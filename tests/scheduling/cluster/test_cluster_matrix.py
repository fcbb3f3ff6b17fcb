"""The cells of a matrix and the releases of a history also run on the workers of a cluster."""

from __future__ import annotations

import json

from git_project import new_project

MATRIX = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.4", "1.5", "1.6"]
"""
# A build backend of the project itself (PEP 517): it needs nothing from an index.
BACKEND = """
import pathlib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, inside = "brittle-2.0-py3-none-any.whl", "brittle-2.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("brittle.py")
        wheel.writestr(f"{inside}/METADATA", "Metadata-Version: 2.1\\nName: brittle\\nVersion: 2.0\\n")
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{inside}/RECORD", "")
    return name
"""


def run(harness, *words):
    """The answer and the errors of a command."""
    process = harness.start(*words, "--json")
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    return json.loads(stdout), stderr


def test_the_cells_of_a_matrix_run_on_workers(harness, write_repro, cluster):
    write_repro("brittle")
    (harness.folder / "small.toml").write_text(MATRIX, encoding="utf-8")
    words = ("matrix", "small.toml", "--scheduler", cluster.address)
    first, complaints = run(harness, *words)
    assert [cell["verdict"] for cell in first["cells"]] == ["good", "good", "bad"]
    assert complaints.count("linux-riscv64") == 1
    assert not any(cell["cached"] for cell in first["cells"])
    again, _ = run(harness, *words)
    assert all(cell["cached"] for cell in again["cells"])


def test_a_history_runs_on_workers(harness, write_repro, cluster):
    write_repro("brittle")
    found, _ = run(harness, "history", "brittle", "--from", "1.4", "--to", "1.7", "--scheduler", cluster.address)
    assert [window["first_bad"] for window in found["windows"]] == ["1.6"]
    assert found["probes"] == len({step["release"] for step in found["steps"]}) > 0


def test_commits_of_a_repository_url_run_on_workers(harness, write_repro, cluster, tmp_path):
    """Each is built here and sent; the workers have no clone."""
    project = new_project(tmp_path / "source")
    head = '[project]\nname = "brittle"\nversion = "2.0"\n[build-system]\nrequires = []\n'
    project.commit(
        "Begin",
        {
            "pyproject.toml": f'{head}build-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": BACKEND,
            "brittle.py": "def step():\n    return 1\n",
        },
    )
    project.git("tag", "v2.0")
    project.commit("Break the step", {"brittle.py": "def step():\n    raise RuntimeError('the step is broken')\n"})
    project.git("clone", "--quiet", "--mirror", ".", str(tmp_path / "bare.git"))
    write_repro("brittle", tool='[tool.harness.signature]\nmessage = "the step is broken"\n')
    text = '[axes]\nrepro = "brittle_step"\n[axes.packages]\nbrittle = ["@v2.0", "main"]\n'
    text += f'[repositories]\nbrittle = "{(tmp_path / "bare.git").as_uri()}"\n'
    (harness.folder / "commits.toml").write_text(text, encoding="utf-8")
    found, _ = run(harness, "matrix", "commits.toml", "--scheduler", cluster.address)
    assert [cell["verdict"] for cell in found["cells"]] == ["good", "bad"]
    caches = [cluster.cache(name) for name in ("one", "two")]
    assert len([path for cache in caches for path in cache.glob("trees/*")]) == 2
    assert not [path for cache in caches for path in cache.glob("clones/*")]
