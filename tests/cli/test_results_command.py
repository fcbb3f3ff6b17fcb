"""`harness results`: every observation as a table or as CSV."""

from __future__ import annotations

import io

import pandas as pd
import pytest


@pytest.fixture
def observed(harness, write_repro):
    write_repro("brittle")
    for release in ("1.2", "1.6", "1.2,<1"):
        harness("probe", "brittle_step", "--with", f"brittle=={release}", "--param", "layers=2")
    return harness


def test_the_table_has_a_row_for_each_observation(observed):
    shown = observed("results", COLUMNS="300")
    assert shown.code == 0
    assert [shown.stdout.count(word) for word in ("completed", "unresolvable ")] == [1, 1]
    assert "brittle==1.6" in shown.stdout


def test_csv_has_every_column(observed):
    table = pd.read_csv(io.StringIO(observed("results", "--format", "csv").stdout), dtype=str)
    assert list(table["outcome"]) != []
    by_outcome = table.set_index("outcome")
    assert by_outcome.loc["raised", "version:brittle"] == "1.6"
    assert by_outcome.loc["completed", "param:layers"] == "2"
    assert by_outcome.loc["raised", "exception"] == "RuntimeError"


def test_tables_are_written_to_a_file(observed):
    assert observed("results", "--format", "csv", "--output", "runs.csv").stdout == ""
    assert observed("results", "--output", "runs.txt").code == 0
    assert "completed" in (observed.folder / "runs.txt").read_text()
    assert len(pd.read_csv(observed.folder / "runs.csv")) == 3


def test_an_empty_folder_is_reported(harness):
    ended = harness("results")
    assert (ended.code, "no observations in results" in ended.stderr) == (2, True)


def test_an_unwritable_file_gives_one_sentence(observed):
    (observed.folder / "file").write_text("")
    for style in ("csv", "table"):
        ended = observed("results", "--format", style, "--output", "file/runs")
        assert ended.code == 6
        assert ended.stderr.startswith("error: ")
