"""Scans over tiny releases: every window, no repeated runs, stored runs first, and reported skips."""

from __future__ import annotations

import pytest
from support import MESSAGE, SIGNED, repro_text

from harness.bisection.history import HistoryStatus
from harness.bisection.history_scan import HistoryRange, history_line, scanned
from harness.events import SILENT
from harness.model import Combination, Verdict
from harness.model.repro import parse_repro
from harness.probing import Judge
from harness.probing.lanes import Lanes
from harness.probing.line import Line, ProbedLine
from harness.question.question import Question
from harness.question.releases import line_of


@pytest.fixture
def lanes():
    lanes = Lanes(2)
    yield lanes
    lanes.close()


@pytest.fixture
def scan(parts, interpreter, lanes):
    """Scan a project and return its history."""

    def scan_of(subject, since=None, until=None, max_gap=None, tool=SIGNED, body=None):
        repro = parse_repro(repro_text(subject, tool=tool, body=body), name="step")
        question = Question(subject, repro, Combination(interpreter.version, ()))
        wanted = HistoryRange(since, until, max_gap)
        line, stride = history_line(question, wanted, index=parts.index, interpreter=interpreter)
        return scanned(line, stride, parts.prober, lanes, SILENT)

    return scan_of


def edges(history):
    return [(w.last_good, w.first_bad, w.last_bad, w.fixed_in) for w in history.windows]


def picture(history):
    return "".join(row.state.symbol for row in history.rows)


def test_runs_of_a_bisection_with_the_same_bad_release_count(scan, parts, interpreter):
    tool = f'[tool.harness.subjects.brittle]\nbad = "1.8"\n{SIGNED}'
    repro = parse_repro(repro_text("brittle", tool=tool), name="step")
    question = Question("brittle", repro, Combination(interpreter.version, ()), good="1.1", bad="1.8")
    plan = line_of(question, index=parts.index, interpreter=interpreter)
    lane = Lanes(1)  # on two, a run that became useless may end all the same, and be kept
    axis = Line("brittle", plan.names, plan.probes(parts.prober), plan.good, plan.bad)
    line = ProbedLine(axis, Judge(repro.signature, parts.store), parts.prober, lane, SILENT)
    bisected = line.search()
    lane.close()
    assert bisected.suspects == ("1.6",)
    history = scan("brittle", since="1.1", max_gap=6, tool=tool)
    assert edges(history)[0][:2] == ("1.5", "1.6")
    cached = {step.release for step in history.steps if step.cached}
    assert cached == {step.release for step in bisected.record.steps} >= {"1.1", "1.5", "1.6", "1.8"}
    assert history.probes == len({step.release for step in history.steps if not step.cached})


def test_releases_between_equal_verdicts_are_marked_as_not_run(scan):
    history = scan("brittle", until="1.5", max_gap=6)
    assert history.status is HistoryStatus.NEVER_BROKEN
    assert picture(history) == "GggggG"
    assert history.notes == (
        "1.1 to 1.4 lie between good runs and were not run; a window of at most 4 releases could hide there.",
    )
    assert history.unseen[0].verdict is Verdict.GOOD
    assert "--max-gap 1" in history.advice


def test_a_bug_in_every_release_is_a_window_without_ends(scan):
    history = scan("stale", max_gap=4)
    assert (history.status, picture(history)) == (HistoryStatus.BROKEN, "BbbB")
    assert edges(history) == [(None, "1.0", "1.3", None)]
    assert "broken in every release that could be judged, 1.0 to 1.3" in history.sentence


def test_uninstallable_releases_have_reasons(scan):
    history = scan("mixed", max_gap=1)
    assert picture(history) == "GxxxxxB"
    assert history.windows[0].left_out["1.1"] == "yanked: it deletes files"
    assert any("lie at an edge of the window from 1.6 on and were left out" in note for note in history.notes)


def test_a_signature_is_taken_from_the_first_failure_without_running_everything(scan):
    history = scan("brittle", max_gap=4, tool="")
    assert history.probes < history.tried == 13
    assert edges(history) == [("1.5", "1.6", "1.9", "1.10")]
    assert (history.signature.exception, history.signature.message) == ("RuntimeError", MESSAGE)
    first = next(step.release for step in history.steps if step.verdict is Verdict.BAD)
    assert any(f"captured from {first}" in note for note in history.notes)


def test_without_a_signature_asking_again_takes_the_same_one(scan):
    """The oldest release fails differently; the newest known failure would give another signature."""
    body = "import brittle\nassert brittle.NUMBER > 0, 'too old'\nbrittle.step()\n"
    first = scan("brittle", max_gap=4, tool="", body=body)
    assert first.signature.exception == "AssertionError"
    assert edges(first) == [(None, "1.0", "1.0", first.windows[0].fixed_in)]
    again = scan("brittle", max_gap=4, tool="", body=body)
    assert (again.probes, again.signature, again.windows) == (0, first.signature, first.windows)


def test_metrics_of_each_run_are_kept(scan):
    body = """
    import json, os, wavering
    with open(os.environ["HARNESS_METRICS"], "w") as file:
        json.dump({"loss": wavering.LOSS}, file)
    wavering.step()
    """
    history = scan("wavering", since="1.1", until="1.2", body=body)
    rows = {row.release: row for row in history.rows}
    assert (rows["1.1"].measured["loss"], rows["1.2"].measured["loss"]) == (1.0, 2.5)
    assert rows["1.1"].measured["duration_s"] > 0
    assert rows["1.1"].uploaded == "2023-02-01"
