"""What a person sees while a bisection runs, on a terminal and in a log."""

from __future__ import annotations

import io

import pytest
from attrs import frozen
from rich.console import Console
from support import repro_text

from harness.culprit.release_search import Progress, Record
from harness.environment import Index, PipSettings
from harness.model import Device, Judgement, Observation, Outcome, Signature, Verdict
from harness.model.repro import parse_repro
from harness.planning.plan import make_plan
from harness.request.question import Question
from harness.search import Bisection, Trial
from harness.terminal import LiveView, PlainView
from harness.terminal.clock import duration
from harness.terminal.scene import heading, picture


@frozen
class Scene:
    """A bisection that is under way."""

    progress: Progress
    search: Bisection


@pytest.fixture
def scene(tmp_path, house, interpreter):
    repro = parse_repro(repro_text("mixed"), name="step")
    index = Index(PipSettings(index_url=house.url), tmp_path, environ={})
    question = Question("brittle", repro, good="1.0", bad="1.9")
    plan = make_plan(question, index=index, interpreter=interpreter, device=Device.CPU)
    search = Bisection(len(plan.releases), good=plan.good, bad=plan.bad)
    return Scene(Progress(plan, search, Record(None)), search)


def play(view, scene):
    """Both ends are judged, and the middle is running."""
    view.begin(scene.progress)
    view.captured(Signature(exception="RuntimeError"))
    for position, verdict in ((9, Verdict.BAD), (0, Verdict.GOOD)):
        trial = Trial(position)
        view.preparing(trial)
        view.running(trial)
        scene.search.tell(trial, verdict)
        seen = Observation("k", Outcome.COMPLETED, "r", "d", Device.CPU, duration_s=1.0)
        view.told(trial, Judgement(verdict, "a [reason] in brackets"), seen, cached=position == 0)
    view.preparing(Trial(4))
    view.running(Trial(4))


def test_a_log_has_a_line_for_each_thing_that_happens(scene):
    out = io.StringIO()
    play(PlainView(Console(file=out, width=60)), scene)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("looking for the release that broke step: brittle 1.0 to 1.9, 10 releases")
    assert "1.9: bad (a [reason] in brackets) [1.0 s]" in lines
    assert "1.0: good (a [reason] in brackets) [known already]" in lines
    assert lines[-1] == "1.4: running"
    assert any("[G????????B]" in line for line in lines)


def test_a_terminal_shows_the_picture_and_what_runs(scene):
    console = Console(file=io.StringIO(), force_terminal=True, width=100, record=True)
    with LiveView(console) as view:
        play(view, scene)
        console.print(view._render())
    text = console.export_text()
    assert "[G????????B]" in text
    assert "1.4" in text
    assert "a [reason] in brackets" in text


def test_the_picture_follows_the_search(scene):
    assert picture(scene.progress).plain == "[??????????]"
    for position, verdict in ((9, Verdict.BAD), (0, Verdict.GOOD), (5, Verdict.SKIP), (4, Verdict.BAD)):
        scene.search.tell(Trial(position), verdict)
    assert picture(scene.progress).plain == "[G???BS---B]"


def test_the_heading_says_what_was_chosen(scene):
    told = "\n".join(heading(scene.progress))
    assert "companions: as near as possible to those of the bad end (--as-of changes it)" in told


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (7200, "2.0 h")])
def test_durations_are_in_the_unit_that_reads_best(seconds, text):
    assert duration(seconds) == text


def test_a_scan_says_how_far_it_is_with_looking_things_up():
    out = io.StringIO()
    view = PlainView(Console(file=out, width=60))
    for done in range(11):
        view.looking_up(done, 10)
    lines = out.getvalue().splitlines()
    assert [line.rpartition(": ")[2].partition(",")[0] for line in lines] == [f"{n} of 10" for n in (0, 2, 4, 6, 8)]
    assert all("left" in line for line in lines[1:])
