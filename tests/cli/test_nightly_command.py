"""`harness nightly`: mistakes give one sentence, and JSON is alone on stdout."""

from __future__ import annotations

import pytest


@pytest.fixture
def matrix(harness, write_repro):
    """A matrix of one cell."""
    write_repro("brittle")
    path = harness.folder / "small.toml"
    path.write_text('[axes]\nrepro = "brittle_step"\n[axes.packages]\nbrittle = ["1.5"]\n', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.toml"], "can't read the matrix nowhere.toml"),
        (["small.toml", "--date", "yesterday"], "--date takes a date such as 2025-06-27, not 'yesterday'"),
        (["small.toml", "--budget", "-1"], "--budget"),
    ],
)
def test_a_mistake_gives_one_sentence_and_records_no_night(harness, matrix, words, sentence):
    ended = harness("nightly", *words)
    assert ended.code == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (harness.folder / "results" / "nights").exists()


def test_json_is_alone_on_stdout_and_lists_the_results(harness, matrix):
    ended = harness("nightly", matrix, "--date", "2024-03-01", "--json")
    assert ended.stderr == ""
    assert [(cell["name"], cell["standing"]) for cell in ended.json["cells"]] == [("brittle_step-brittle-1.5", "good")]
    assert ended.json["start"] == "2024-03-01T00:00:00+00:00"


def test_without_a_date_the_night_begins_now_and_the_next_one_later(harness, matrix):
    first = harness("nightly", matrix, "--json").json
    again = harness("nightly", matrix, "--json").json
    assert first["start"].endswith("+00:00")
    assert again["start"] >= first["start"]
    assert "ran" not in again


def test_cells_of_a_missing_python_are_not_judged(harness, matrix):
    matrix.write_text(matrix.read_text(encoding="utf-8") + '[[include]]\npython = "3.99"\n', encoding="utf-8")
    told = harness("nightly", matrix, "--date", "2024-03-01", "--json").json
    assert [cell["standing"] for cell in told["cells"]] == ["good", "not judged"]
    assert "3.99" in told["cells"][1]["reason"]
