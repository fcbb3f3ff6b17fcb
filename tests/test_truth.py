"""`nox -s truth` tells exact answers from wider and wrong ones."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from harness.catalogue.entries import all_entries

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "truth.py"
REPRO = """# /// script
# [tool.harness.subjects.tool]
# good = "1.0"
# bad = "3.0"
# [tool.harness.signature]
# exception = "ValueError"
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://example.org"]
# {edges}
# {more}
# ///
"""
EDGES = 'last-good = "1.0"\n# first-bad = "2.0"\n# last-bad = "3.0"\n# fixed-in = "4.0"'


@pytest.fixture(scope="module")
def truth():
    spec = importlib.util.spec_from_file_location("truth", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def asked(truth, tmp_path, edges=EDGES, more=""):
    folder = tmp_path / "repros"
    folder.mkdir()
    (folder / "tool_case.py").write_text(REPRO.format(edges=edges, more=more))
    (entry,) = [entry for entry in all_entries(tmp_path) if entry.name == "tool_case"]
    return truth.questions([entry])


def answer(last_good="1.0", first_bad="2.0", files=(), functions=(), names=()):
    regions = [{"function": function} for function in functions]
    return {
        "status": "found",
        "sentence": "...",
        "last_good": last_good,
        "first_bad": first_bad,
        "culprit": [{"files": list(files), "regions": regions}],
        "failures": [{"culprits": [{"evidence": [{"name": name} for name in names]}]}],
    }


def test_a_window_is_two_questions(truth, tmp_path):
    broke, fixed = asked(truth, tmp_path)
    assert broke.words == ("bisect", "tool", "--repro", "tool_case", "--depth", "release")
    assert fixed.words[4:8] == ("--find-fix", "--bad", "3.0", "--good")
    assert (broke.expected, fixed.expected) == ("1.0 -> 2.0", "3.0 -> 4.0")
    assert truth.compared(fixed, {"last_bad": "3.0", "first_good": "4.0", "status": "fixed"}) == ("exact", "3.0 -> 4.0")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (answer(files=["a.py"], functions=["f"]), "exact"),
        (answer(files=["a.py"], functions=["g"]), "wider"),
        (answer(files=["a.py", "b.py"], functions=["f"]), "wider"),
        (answer(), "wider"),
        (answer(first_bad="2.1", files=["a.py"], functions=["f"]), "wrong"),
        ({"status": "unknown", "sentence": "can't tell"}, "no answer"),
    ],
)
def test_an_answer_is_compared_with_the_lines(truth, tmp_path, found, verdict):
    broke, _ = asked(truth, tmp_path, more='file = "a.py"\n# function = "f"')
    assert truth.compared(broke, found)[0] == verdict


@pytest.mark.parametrize(("names", "verdict"), [(["m.f"], "exact"), (["m.g"], "wider"), ([], "wider")])
def test_a_removed_name_must_be_named(truth, tmp_path, names, verdict):
    broke, _ = asked(truth, tmp_path, more='removed = "m.f"')
    assert truth.compared(broke, answer(names=names))[0] == verdict


def test_a_bug_that_was_always_there_has_no_release_to_blame(truth, tmp_path):
    (always,) = asked(truth, tmp_path, edges="never-worked = true")
    assert truth.compared(always, {"status": "not-a-regression", "sentence": ""})[0] == "exact"
    assert truth.compared(always, answer())[0] == "wrong"


def test_the_table_keeps_rows_that_were_not_run(truth, tmp_path, capsys):
    rows = [
        truth.Row(name, "tool", "crash", "a", "b", verdict, "release only", 3, 1.5)
        for name, verdict in (("x", "exact"), ("y", "wrong"))
    ]
    truth.keep(rows, tmp_path / "truth.json")
    truth.keep([truth.Row("y", "tool", "crash", "a", "a", "exact", "release only", 4, 2.0)], tmp_path / "truth.json")
    assert [row["verdict"] for row in json.loads((tmp_path / "truth.json").read_text())] == ["exact", "exact"]
    assert not truth.show(rows)
    assert capsys.readouterr().out.splitlines()[-2:] == ["1 of 2 exact, 6 runs, 3 s", "2 release only"]


def test_how_well_an_answer_is_proved_is_that_of_its_finest_level_where_lines_were_asked_for(truth, tmp_path, capsys):
    deep, fix = asked(truth, tmp_path, more='file = "a.py"')
    levels = [{"shown": "proved both ways"}, {"shown": "shown one way only"}]
    answers = [(deep, levels), (deep, levels[:1]), (deep, levels[:1]), (deep, None), (fix, levels[:1])]
    shown = [truth.proved(question, {"culprit": found}) for question, found in answers]
    rows = [truth.Row("x", "tool", "crash", "a", "a", "exact", text, 3, 1.5) for text in shown]
    assert truth.show(rows)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "2 proved both ways, 1 shown one way only, 1 not proved, 1 release only"


def test_every_entry_is_in_the_table_of_the_docs_as_it_was_run(truth):
    table = {row["name"]: row for row in json.loads(truth.TABLE.read_text(encoding="utf-8"))}
    expected = {question.name: question.expected for question in truth.questions(all_entries(SCRIPT.parents[1]))}
    assert {name: row["expected"] for name, row in table.items()} == expected
    assert {row["verdict"] for row in table.values()} == {"exact"}
