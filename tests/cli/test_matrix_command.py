"""`harness matrix`: runs cells, shows them as a table, and writes a page."""

from __future__ import annotations

import json
import re
import signal

import pytest
from support import SIGNED
from test_interruption import GATED as GATED_AT_5
from test_interruption import wait_for

GATED = GATED_AT_5.replace("NUMBER == 5", "NUMBER == 6")
TINY = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.5", "1.6", "1.10"]
"""


@pytest.fixture
def matrix(harness, write_repro):
    """Run `harness matrix` on a file with this text."""
    write_repro("brittle")

    def run(text: str, *words: str, **environ: str):
        folder = harness.folder / "matrices"
        folder.mkdir(exist_ok=True)
        (folder / "tiny.toml").write_text(text, encoding="utf-8")
        return harness("matrix", "matrices/tiny.toml", *words, **environ)

    run.folder = harness.folder
    run.harness = harness
    return run


def page_of(matrix) -> str:
    return (matrix.folder / "results/matrices/tiny.html").read_text()


def record_of(matrix):
    return json.loads((matrix.folder / "results/matrices/tiny.json").read_text())


def test_the_list_has_what_nox_needs(matrix):
    listed = matrix(TINY, "--list", "--json").json
    assert listed["matrix"] == "tiny"
    assert listed["left_out"] == []
    assert listed["cells"][0] == {
        "name": "brittle_step-brittle-1.5",
        "arguments": ["brittle_step", "--with", "brittle==1.5", "--hold", "none", "--device", "auto"],
        "tags": ["brittle_step", "brittle_1_5"],
        "python": None,
    }
    assert matrix(TINY, "--list", "--only", "brittle=1.6").stdout == "brittle_step-brittle-1.6\n"
    assert not (matrix.folder / "results").exists()


def test_excluded_releases_are_reported(matrix, write_repro):
    write_repro("mixed")
    text = 'axes.repro = "mixed_step"\naxes.packages.mixed = [">=1.0,<1.2"]'
    listed = matrix(text, "--list", "--json").json
    assert [cell["name"] for cell in listed["cells"]] == ["mixed_step-mixed-1.0"]
    assert listed["left_out"] == [{"project": "mixed", "version": "1.1", "reason": "yanked: it deletes files"}]
    ended = matrix(text)
    assert "left out: mixed 1.1 (yanked: it deletes files)" in ended.stderr
    assert "yanked: it deletes files" in page_of(matrix)


def test_a_secret_passed_to_a_run_is_not_on_the_page(matrix, write_repro):
    """Nor is it in the results, which are shown where its value is no longer known."""
    body = 'import os\n\nprint("the place is", os.environ["MY_PLACE"])\nraise RuntimeError(os.environ["MY_PLACE"])\n'
    write_repro("brittle", body=body, tool=SIGNED.replace("the step is broken", ""))
    place = "somewhere-nobody-knows"
    assert matrix(TINY, "--only", "brittle=1.5", "--pass-env", "MY_PLACE", MY_PLACE=place).code == 0
    page = page_of(matrix)
    assert "the place is &lt;secret&gt;" in page
    assert place not in page + json.dumps(record_of(matrix))
    matrix(TINY, "--show")
    assert place not in page_of(matrix) + json.dumps(record_of(matrix))


def test_ctrl_c_keeps_and_shows_finished_cells(harness, write_repro, tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    write_repro("brittle", body=GATED, tool=f"timeout = 300\n{SIGNED}")
    (harness.folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    own = harness.with_environ(GATE=str(gate), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    process = own.start("matrix", "tiny.toml", "--pass-env", "GATE", "--lanes", "1")
    wait_for(lambda: (gate / "reached").exists())
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "run the same command again" in stderr
    assert [line.split() for line in stdout.splitlines()[1:4]] == [["1.5", "good"], ["1.6", "-"], ["1.10", "-"]]
    record = json.loads((harness.folder / "results/matrices/tiny.json").read_text())
    assert record["counts"] == {"good": 1, "not run": 2}


WORKS_WITH = """\
| brittle | result |
|---|---|
| 1.5 | works |
| 1.6 | **fails** |
| 1.10 | works |
"""


def test_a_table_for_a_readme_by_running_or_from_the_results(matrix):
    ended = matrix(TINY, "--table")
    assert ended.code == 0, ended.stderr
    table, _, source = ended.stdout.partition("\n\n")
    assert f"{table}\n" == WORKS_WITH
    assert re.fullmatch(
        r"Run until \d{4}-\d\d-\d\d with Python 3\.\d+ on cpu: `harness matrix matrices/tiny.toml --table`\n", source
    )
    again = matrix(TINY, "--table", "--show")
    assert again.stdout == ended.stdout
    assert "cells to judge" not in again.stderr
