"""The page of a matrix: its content, its charts, and how it works in a browser."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from standing_matrices import SMALL, cell_of, large, matrix_of, run_of, stand
from test_content import HOSTILE
from test_redact import HERE, PLANT, SECRETS

from harness.matrix.page import matrix_page, plots
from harness.matrix.running import CellResult
from harness.matrix.table import tables
from harness.model import Device, Judgement, RaisedException, StackFrame, Verdict
from harness.report.charts import metric_charts
from harness.report.privacy import private_in


def page_of(matrix, log="", **more):
    return matrix_page(matrix, lambda observation: log, **more)


def content_of(matrix, log=""):
    return page_of(matrix, log).content


def panels_of(matrix, log=""):
    return {panel["label"]: panel for panel in content_of(matrix, log)["panels"]}


def test_the_summary_has_counts_and_words():
    content = content_of(SMALL)
    assert content["sentence"] == "5 cells: 2 bad, 1 good, 1 skipped, 1 not run."
    assert content["counts"] == [("bad", 2), ("good", 1), ("skip", 1), ("not run", 1)]
    assert content["about"] == "Sells a thing."
    assert dict(content["facts"]) == {
        "Repro": "sale",
        "Recognised by": 'ValueError, "no price"',
        "Device": "CPU. Runs on the CPU, where bugs in GPU kernels and drivers can't show",
        "Python": "3.11.7",
        "Platform": "linux-x86_64",
        "Seen": "2026-01-02",
    }


def test_every_cell_has_a_labelled_chip():
    assert 'title="shop 1.10, case=whole: bad, ValueError: no price">bad</a>' in page_of(SMALL).html()


def test_rows_without_releases_are_not_described_as_releases():
    content = content_of(matrix_of(stand("gb", [cell_of(case="a"), cell_of(case="b")])))
    assert all(panel["compared"] == "" for panel in content["panels"])


def test_a_cell_has_its_reason_and_command():
    panel = panels_of(SMALL, "the last line")["shop 1.10, case=whole"]
    assert (panel["word"], panel["reason"]) == ("bad", "ValueError: no price")
    assert panel["command"] == "harness probe sale --with shop==1.10 --hold none --param 'case=\"whole\"' --device auto"
    assert panel["again"].startswith("harness probe --again ")
    assert panel["log"] == "the last line"
    assert panel["traceback"].endswith("no price\nnot even a small one")
    assert "stop" in panel["traceback"]
    facts = dict(panel["facts"])
    assert facts["shop"] == "1.10"
    assert facts["runs on"] == "CPU. Runs on the CPU, where bugs in GPU kernels and drivers can't show"
    assert dict(panel["versions"]) == {"shop": "1.10", "till": "3.0"}


def test_a_cell_names_the_files_changed_by_its_run():
    cell = cell_of(shop="1.0")
    run = run_of(cell, Verdict.GOOD, altered=("lib/python3.11/site-packages/till/data.py",))
    (panel,) = content_of(matrix_of((CellResult(cell, run),)))["panels"]
    assert dict(panel["facts"])["changed in its environment"] == "till/data.py"


def test_the_day_of_the_matrix_is_part_of_the_command():
    run = run_of(cell_of(shop="1.0"), Verdict.GOOD)
    dated = evolve(run.probe, combination=evolve(run.probe.combination, as_of=datetime(2024, 2, 1, tzinfo=UTC)))
    (panel,) = content_of(matrix_of((CellResult(run.cell, evolve(run, probe=dated)),)))["panels"]
    assert panel["command"].endswith("--as-of 2024-02-01T00:00:00+00:00")


def test_locks_are_compared_where_the_verdict_changes():
    """With the nearest older cell in the column that has a lock."""
    panels = panels_of(SMALL)
    turned = panels["shop 1.10, case=whole"]
    assert turned["compared"] == "shop 1.9, case=whole (good)"
    assert turned["changes"] == ("coin 0.9 -> 1.0", "shop 1.9 -> 1.10")
    assert panels["shop 1.9, case=whole"]["compared"] == ""
    cells = [cell_of(shop=f"1.{n}") for n in (0, 1, 2, 3)]
    told = content_of(matrix_of(stand("gsbb", cells)))["panels"]
    assert [panel["compared"] for panel in told] == ["", "shop 1.0 (good)", "shop 1.0 (good)", ""]


def test_a_cell_not_run_has_only_its_command():
    panel = panels_of(SMALL)["shop 1.11, case=half"]
    assert (panel["word"], panel["again"], panel["log"]) == ("not run", "", "")
    assert panel["command"].startswith("harness probe sale")
    blocked = CellResult(cell_of(shop="1.0"), blocked="no Python 3.1 on this machine")
    (panel,) = content_of(matrix_of((blocked,)))["panels"]
    assert (panel["word"], panel["reason"]) == ("skip", "no Python 3.1 on this machine")


def test_an_emulated_device_is_named_with_its_limits():
    run = run_of(cell_of(shop="1.0"), Verdict.BAD, device=Device.EMULATED)
    content = content_of(matrix_of((CellResult(run.cell, run),)))
    told = dict(content["panels"][0]["facts"])["runs on"]
    assert told.startswith("CPU with a stand-in for CUDA. Runs with a stand-in for CUDA")
    assert dict(content["facts"])["Device"] == told


def test_a_long_log_is_shown_from_its_end():
    panel = panels_of(SMALL, "x" * 1500 + "\n" + "y\n" * 30_000 + "the end")["shop 1.10, case=half"]
    assert panel["log"].endswith("y\nthe end")
    wide = panels_of(SMALL, ("z" * 1000 + "\n") * 100)["shop 1.10, case=half"]["log"]
    assert wide.startswith("...\nzzz")
    assert len(wide) < 21_000


def test_the_record_has_every_cell_with_its_run():
    run = run_of(cell_of(shop="1.0"), Verdict.GOOD, metrics={"loss": float("nan"), "norm": 2.0})
    record = json.loads(page_of(matrix_of((CellResult(run.cell, run),))).json())
    (cell,) = record["cells"]
    assert (record["schema"], record["matrix"], record["counts"]) == (1, "till", {"good": 1})
    assert (cell["verdict"], cell["reason"], cell["cached"]) == ("good", "ran to its end", False)
    assert cell["metrics"] == {"loss": None, "norm": 2.0}
    assert cell["lock"]["versions"] == {"shop": "1.0", "till": "3.0", "coin": "0.9"}
    assert (cell["choice"]["packages.shop"], cell["device"], cell["seconds"]) == ("1.0", "cpu", 2.0)
    assert cell["observation"] == run.observation.key
    untried = json.loads(page_of(SMALL).json())["cells"][-1]
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
        (CellResult(run.cell, run), CellResult(odd, blocked=PLANT)), command=PLANT, left_out=((PLANT, PLANT),)
    )


def written(page) -> str:
    return page.html() + page.json()


def test_planted_private_data_is_found_nowhere(planted):
    private = private_in(HERE, {Path("/var/tmp/probes"): "<scratch>"}, addresses=["https://mirror.corp.example/simple"])
    text = written(page_of(planted, PLANT, private=private))
    assert [secret for secret in SECRETS if secret in text] == []
    assert "&lt;secret&gt;" in text


def test_without_redaction_the_page_shows_the_planted_data(planted):
    """The private data is in the page and the record, so the test above can fail."""
    page = page_of(planted, PLANT)
    assert "workhorse" in page.html()
    assert "workhorse" in page.json()


def plots_of(standings):
    cells = [standing.cell for standing in standings]
    return list(plots(tables(cells), standings))


def test_metrics_are_drawn_beside_time_and_memory():
    cells = [cell_of(shop=shop, case=case) for shop in ("1.9", "1.10") for case in ("whole", "half")]
    runs = [run_of(cell, Verdict.GOOD, metrics={"loss": float(n)}, peak_memory=2**21) for n, cell in enumerate(cells)]
    ((_, _, points),) = plots_of([CellResult(run.cell, run) for run in runs])
    assert [chart.title for chart in metric_charts(points)] == ["loss", "run, seconds", "peak memory, MiB"]
    assert metric_charts(points)[0].series == ("case=whole", "case=half")
    losses = [(one.label, one.series, one.value, one.href) for one in points if one.metric == "loss"]
    assert losses == [
        ("1.9", "case=whole", 0.0, "#cell-0"),
        ("1.9", "case=half", 1.0, "#cell-1"),
        ("1.10", "case=whole", 2.0, "#cell-2"),
        ("1.10", "case=half", 3.0, "#cell-3"),
    ]
    assert "#cell-3" in metric_charts(points)[0].svg


def test_a_cell_that_did_not_run_has_no_point():
    ((_, _, points),) = plots_of(SMALL.results)
    assert [(one.label, one.verdict) for one in points if one.metric == "duration_s"] == [
        ("1.9", "good"),
        ("1.10", "bad"),
        ("1.10", "bad"),
    ]


def test_a_single_release_has_no_chart():
    assert plots_of(stand("g", [cell_of(shop="1.0")])) == []
    assert plots_of(stand("??", [cell_of(shop="1.0"), cell_of(shop="1.1")])) == []


def test_more_lines_than_colours_are_reported():
    cells = [cell_of(shop=f"1.{n}", case=case) for n in range(9) for case in "abcdefgh"]
    ((_, note, points),) = plots_of(stand("g" * 72, cells))
    assert len(metric_charts(points)[-1].series) == 6
    assert note == "The first 6 of 8 columns are drawn."


def test_a_matrix_of_several_tables_has_charts_for_each():
    titles = [title for title, _, _ in plots_of(large(4).results)]
    assert titles == [f"till = {till}, case = {case}" for till in ("2.0", "3.0") for case in ("whole", "half")]


def test_nan_and_infinity_are_named():
    runs = [run_of(cell_of(shop=shop), Verdict.GOOD, metrics={"loss": float("nan")}) for shop in ("1.9", "1.10")]
    ((_, _, points),) = plots_of([CellResult(run.cell, run) for run in runs])
    assert metric_charts(points)[0].missing == ("1.9: nan", "1.10: nan")


LOG = f"{HOSTILE}\nthe last line"


def text_of(matrix) -> str:
    return matrix_page(matrix, lambda observation: f"{LOG} of {observation.key}").html()


def hostile():
    """A matrix in which every text tries to break out."""
    cell = evolve(cell_of(shop="1.0", case=HOSTILE), name=f'"{HOSTILE}')
    run = run_of(cell, Verdict.BAD, drift=(HOSTILE,))
    run = evolve(run, judgement=Judgement(Verdict.BAD, HOSTILE))
    other = evolve(cell_of(shop="1.1", case=HOSTILE), name=f'"{HOSTILE}!')
    return matrix_of(
        (CellResult(cell, run), CellResult(other, blocked=HOSTILE)),
        name=HOSTILE,
        command=HOSTILE,
        left_out=((HOSTILE, HOSTILE),),
    )


def test_the_page_asks_for_nothing_from_outside():
    text = matrix_page(SMALL, lambda observation: "a log").html()
    found = re.findall(r"""\s(?:src|href)=["']?([^"'\s>]+)""", text)
    assert [address for address in found if not address.startswith("#")] == ["data:,"]
    assert "@import" not in text
    assert "url(" not in text


@pytest.mark.parametrize(("matrix", "scheme"), [(SMALL, "light"), (hostile(), "dark")], ids=["small", "hostile"])
def test_clicking_a_cell_opens_its_log(open_page, matrix, scheme):
    opened, said = open_page(text_of(matrix), color_scheme=scheme, viewport={"width": 1200, "height": 900})
    assert opened.locator("dialog[open]").count() == 0
    opened.locator(".chip.bad").first.click()
    panel = opened.locator("dialog[open]")
    assert panel.count() == 1
    log = panel.locator(".log pre")
    assert log.is_visible()
    assert log.inner_text().startswith(f"{HOSTILE}\nthe last line of key of ")
    assert "harness probe sale" in panel.inner_text()
    opened.keyboard.press("Escape")
    assert opened.locator("dialog[open]").count() == 0
    assert [line for line in said if not line.startswith("data:")] == []
    assert opened.evaluate("document.images.length + document.scripts.length") == 1


def test_each_cell_opens_its_own_panel(open_page):
    opened, _ = open_page(text_of(SMALL))
    for chip in opened.locator(".chip").all():
        chip.click()
        panel = opened.locator("dialog[open]")
        assert f"#{panel.get_attribute('id')}" == chip.get_attribute("href")
        label, _, _ = chip.get_attribute("title").partition(":")
        assert panel.locator("h2").inner_text().split() == [*chip.inner_text().split(), *label.split()]
        panel.locator(".close").click()


def test_verdicts_do_not_rely_on_colour(open_page):
    """No two verdicts look the same in either scheme, and colour alone never tells them apart."""
    for scheme in ("light", "dark"):
        opened, _ = open_page(text_of(SMALL), color_scheme=scheme)
        chips = opened.locator(".chip").all()
        assert [chip.inner_text() for chip in chips] == ["good", "bad", "bad", "skipped", "not run"]
        style = "e => { const s = getComputedStyle(e); return s.backgroundColor + s.borderStyle; }"
        assert len({chip.evaluate(style) for chip in chips}) == 4


def test_an_address_with_a_cell_opens_it(open_page):
    (panel, *_) = matrix_page(SMALL, lambda observation: "").content["panels"]
    opened, _ = open_page(text_of(SMALL), fragment=f"#{panel['id']}")
    assert opened.locator("dialog[open]").get_attribute("id") == panel["id"]


def test_logs_open_without_javascript(open_page):
    opened, _ = open_page(text_of(SMALL), java_script_enabled=False)
    log = opened.locator("dialog .log pre").nth(1)
    assert not log.is_visible()
    opened.locator(".chip.bad").first.click()
    assert log.is_visible()


@pytest.mark.parametrize("matrix", [large(6), hostile()], ids=["large", "hostile"])
def test_a_phone_does_not_scroll_sideways(open_page, matrix):
    """Wide content scrolls inside its own box."""
    opened, _ = open_page(text_of(matrix), viewport={"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    opened.locator(".chip.bad").first.click()
    assert opened.locator("dialog[open]").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_cells_can_be_filtered_by_verdict_and_text(open_page):
    opened, _ = open_page(text_of(SMALL))

    def shown():
        return [
            row.locator("td").nth(1).inner_text() for row in opened.locator("table.filtered tbody tr:visible").all()
        ]

    assert shown() == ["good", "bad", "bad", "skipped", "not run"]
    opened.click("button[value=not-run]")
    assert shown() == ["not run"]
    opened.click("button[value=all]")
    opened.fill(".filter input", "1.10")
    assert shown() == ["bad", "bad"]


def test_clicking_a_point_opens_its_cell(open_page):
    opened, said = open_page(text_of(SMALL))
    opened.locator(".chart .dot.good").first.click()
    assert "shop 1.9" in opened.locator("dialog[open] h2").inner_text()
    assert [line for line in said if not line.startswith("data:")] == []
