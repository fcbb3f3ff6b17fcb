"""The cells of a matrix and the releases of a history also run on the workers of a cluster."""

from __future__ import annotations

import json

MATRIX = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.4", "1.5", "1.6"]
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
