"""A search over releases is announced with its range and the choices made for the user."""

from __future__ import annotations

from attrs import evolve
from support import SIGNED, Heard, make_parts, repro_text

from harness.bisection.releases import investigate
from harness.environment import PipSettings
from harness.events import SearchBegan
from harness.model import Device
from harness.model.culprit import Level
from harness.model.repro import parse_repro
from harness.probing.lanes import Lanes
from harness.question.inquiry import Inquiry
from harness.question.releases import make_plan
from harness.session import Session
from harness.settings import Settings


def test_the_range_and_the_choices_are_shown(tmp_path, house, interpreter):
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), tmp_path / "uv", interpreter)
    repro = parse_repro(repro_text("mixed", tool=SIGNED), name="step")
    question = Inquiry("mixed", repro, good="1.0", bad="1.6", depth=Level.RELEASE)
    plan = make_plan(question, index=parts.index, interpreter=interpreter, device=Device.CPU)
    plan = evolve(plan, choices=("a choice",))
    heard = Heard()
    settings = Settings(results=parts.store.root)
    session = Session(settings, heard, parts.store, parts.index, interpreter, parts.prober, ())
    investigate(session, plan, Lanes(1))
    (began,) = heard.of(SearchBegan)
    assert "looking for the release that broke step: mixed 1.0 to 1.6" in began.headline
    assert began.details[0] == "a choice"
    assert any("disk space for the first environment: 1 wheel" in detail for detail in began.details)
    assert any("the bug is recognised by: RuntimeError" in detail for detail in began.details)
    left_out = [detail for detail in began.details if detail.startswith("left out: ")]
    assert any("1.1" in line and "yanked" in line for line in left_out)
