"""The page of a matrix describes each cell and the whole, without private data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from answers import BAD_RUN
from attrs import evolve
from standing_matrices import SMALL, cell_of, matrix_of, run_of, stand
from test_redact import HERE, PLANT, SECRETS

from harness.matrix.running import Standing
from harness.model import Device, Judgement, RaisedException, StackFrame, Verdict
from harness.report import private_here
from harness.report.matrix.building import make_matrix_content
from harness.report.render import render_record
from harness.report.templating import filled


def content_of(matrix, log="", **more):
    return make_matrix_content(matrix, lambda observation: log, **more)


def panels_of(matrix, log=""):
    return {panel.label: panel for panel in content_of(matrix, log).panels}


def test_the_summary_has_counts_and_words():
    content = content_of(SMALL)
    assert content.sentence == "5 cells: 2 bad, 1 good, 1 skipped, 1 not run."
    assert [(count.number, count.word) for count in content.counts] == [
        (2, "bad"),
        (1, "good"),
        (1, "skip"),
        (1, "not run"),
    ]
    assert content.readings == (("case=whole", "good 1.9, bad 1.10, skipped 1.11"), ("case=half", "bad 1.10"))
    assert content.about == "Sells a thing."
    assert dict(content.facts) == {
        "Repro": "sale",
        "Recognised by": 'ValueError, "no price"',
        "Device": "CPU. Runs on the CPU, where bugs in GPU kernels and drivers can't show",
        "Python": "3.11.7",
        "Platform": "linux-x86_64",
        "Seen": "2026-01-02",
    }


def test_a_row_that_changes_often_is_summarised():
    cells = [cell_of(shop=f"1.{n}") for n in range(20)]
    ((_, told),) = content_of(matrix_of(stand("gb" * 10, cells))).readings
    assert told.endswith("bad 1.5, and 14 more changes")


def test_rows_without_releases_are_not_described_as_releases():
    content = content_of(matrix_of(stand("gb", [cell_of(case="a"), cell_of(case="b")])))
    assert content.readings == ()
    assert all(panel.older == panel.newer == panel.changes_title == "" for panel in content.panels)


def test_a_cell_has_its_reason_and_command():
    panel = panels_of(SMALL, "the last line")["shop 1.10, case=whole"]
    assert (panel.word, panel.reason) == ("bad", "ValueError: no price")
    assert panel.command == "harness probe sale --with shop==1.10 --hold none --param 'case=\"whole\"' --device auto"
    assert panel.again.startswith("harness probe --again ")
    assert panel.log == "the last line"
    assert panel.traceback.endswith("no price\nnot even a small one")
    assert "stop" in panel.traceback
    facts = dict(panel.facts)
    assert facts["shop"] == "1.10"
    assert facts["runs on"] == "CPU. Runs on the CPU, where bugs in GPU kernels and drivers can't show"
    assert dict(panel.versions) == {"shop": "1.10", "till": "3.0"}


def test_a_cell_names_the_files_changed_by_its_run():
    cell = cell_of(shop="1.0")
    run = run_of(cell, Verdict.GOOD, altered=("lib/python3.11/site-packages/till/data.py",))
    (panel,) = content_of(matrix_of((Standing(cell, run),))).panels
    assert dict(panel.facts)["changed in its environment"] == "till/data.py"


def test_a_long_command_has_one_option_per_line():
    cell = evolve(cell_of(shop="1.10"), hold=("a-long-name==1.0", "another-long-name==2.0", "a-third-name==3.0"))
    (panel,) = content_of(matrix_of(stand("g", [cell]))).panels
    assert panel.command.splitlines()[:2] == ["harness probe sale \\", "    --with shop==1.10 \\"]


def test_the_day_of_the_matrix_is_part_of_the_command():
    run = run_of(cell_of(shop="1.0"), Verdict.GOOD)
    dated = evolve(run.probe, combination=evolve(run.probe.combination, as_of=datetime(2024, 2, 1, tzinfo=UTC)))
    (panel,) = content_of(matrix_of((Standing(run.cell, evolve(run, probe=dated)),))).panels
    assert panel.command.endswith("--as-of 2024-02-01T00:00:00+00:00")


def test_locks_are_compared_where_the_verdict_changes():
    """With the nearest older cell in the column that has a lock."""
    panels = panels_of(SMALL)
    turned = panels["shop 1.10, case=whole"]
    assert turned.changes_title == "shop 1.9, case=whole (good)"
    assert turned.changes == ("coin 0.9 -> 1.0", "shop 1.9 -> 1.10")
    assert panels["shop 1.9, case=whole"].changes_title == ""
    cells = [cell_of(shop=f"1.{n}") for n in (0, 1, 2, 3)]
    told = content_of(matrix_of(stand("gsbb", cells))).panels
    assert [panel.changes_title for panel in told] == ["", "shop 1.0 (good)", "shop 1.0 (good)", ""]
    assert [panel.older for panel in told] == ["", *(panel.id for panel in told[:-1])]
    assert [panel.newer for panel in told] == [*(panel.id for panel in told[1:]), ""]


def test_a_cell_not_run_has_only_its_command():
    panel = panels_of(SMALL)["shop 1.11, case=half"]
    assert (panel.word, panel.state, panel.again, panel.log) == ("not run", "not-run", "", "")
    assert panel.command.startswith("harness probe sale")
    hindered = Standing(cell_of(shop="1.0"), hindered="no Python 3.1 on this machine")
    (panel,) = content_of(matrix_of((hindered,))).panels
    assert (panel.word, panel.reason) == ("skip", "no Python 3.1 on this machine")


def test_an_emulated_device_is_named_with_its_limits():
    run = run_of(cell_of(shop="1.0"), Verdict.BAD, device=Device.EMULATED)
    content = content_of(matrix_of((Standing(run.cell, run),)))
    told = dict(content.panels[0].facts)["runs on"]
    assert told.startswith("CPU with a stand-in for CUDA. Runs with a stand-in for CUDA")
    assert dict(content.facts)["Device"] == told


def test_a_long_log_is_shown_from_its_end():
    panel = panels_of(SMALL, "x" * 1500 + "\n" + "y\n" * 30_000 + "the end")["shop 1.10, case=half"]
    assert panel.log.endswith("y\nthe end")
    wide = panels_of(SMALL, ("z" * 1000 + "\n") * 100)["shop 1.10, case=half"].log
    assert wide.startswith("...\nzzz")
    assert len(wide) < 21_000


def test_the_record_has_every_cell_with_its_run():
    run = run_of(cell_of(shop="1.0"), Verdict.GOOD, metrics={"loss": float("nan"), "norm": 2.0})
    record = json.loads(render_record(content_of(matrix_of((Standing(run.cell, run),))).record))
    (cell,) = record["cells"]
    assert (record["schema"], record["matrix"], record["counts"]) == (1, "till", {"good": 1})
    assert (cell["verdict"], cell["reason"], cell["cached"]) == ("good", "ran to its end", False)
    assert cell["metrics"] == {"loss": None, "norm": 2.0}
    assert cell["lock"]["versions"] == {"shop": "1.0", "till": "3.0", "coin": "0.9"}
    assert (cell["choice"]["packages.shop"], cell["device"], cell["seconds"]) == ("1.0", "cpu", 2.0)
    assert cell["observation"] == run.observation.key
    untried = json.loads(render_record(content_of(SMALL).record))["cells"][-1]
    assert (untried["verdict"], "lock" in untried) == ("not run", False)


@pytest.fixture
def planted():
    """A matrix with private data in every text."""
    frame = StackFrame("/srv/people/jane.doe/lib.py", 1, "jane", "shop", PLANT)
    raised = RaisedException("builtins.ValueError", PLANT, frames=(frame,))
    run = run_of(
        cell_of(shop="1.0"), Verdict.BAD, exception=raised, machine={"name": "workhorse"}, drift=(PLANT,), detail=PLANT
    )
    run = evolve(run, judgement=Judgement(Verdict.BAD, PLANT))
    odd = evolve(cell_of(shop="1.1"), params={"path": PLANT}, hold=(), name=PLANT)
    return matrix_of(
        (Standing(run.cell, run), Standing(odd, hindered=PLANT)), command=PLANT, left_out=((PLANT, PLANT),)
    )


def written(content) -> str:
    return filled("matrix.html.j2", r=content) + render_record(content.record)


def test_planted_private_data_is_found_nowhere(planted):
    private = private_here(
        HERE, {Path("/var/tmp/probes"): "<scratch>"}, addresses=["https://mirror.corp.example/simple"]
    )
    text = written(content_of(planted, PLANT, private=private))
    assert [secret for secret in SECRETS if secret in text] == []
    assert "&lt;secret&gt;" in text


def test_without_redaction_the_page_shows_the_planted_data(planted):
    """The private data is in the page and the record, so the test above can fail."""
    content = content_of(planted, PLANT)
    assert "workhorse" in filled("matrix.html.j2", r=content)
    assert "workhorse" in render_record(content.record)


def test_text_that_cannot_be_redacted_is_withheld():
    """Messages and logs of runs with a passed variable whose value is no longer known."""
    why = "What runs printed is left out: they saw MY_TOKEN, which is not set now."
    content = content_of(evolve(SMALL, withheld=why), "a line of the log")
    text = written(content)
    assert why in text
    assert [
        told for told in ("a line of the log", "ValueError: no price", "not even a small one") if told in text
    ] == []
    assert BAD_RUN.outcome.value in text
