"""A search is announced with its range and the choices made for the user."""

from __future__ import annotations

from attrs import evolve
from support import repro_text

from harness.environment import Index, PipSettings
from harness.events import Progress
from harness.model import Device
from harness.model.repro import parse_repro
from harness.planning.announcing import search_began
from harness.planning.plan import make_plan
from harness.request.question import Question


def test_the_range_and_the_choices_are_shown(tmp_path, house, interpreter):
    repro = parse_repro(repro_text("mixed"), name="step")
    index = Index(PipSettings(index_url=house.url), tmp_path, environ={})
    plan = make_plan(
        Question("mixed", repro, good="1.0", bad="1.6"), index=index, interpreter=interpreter, device=Device.CPU
    )
    plan = evolve(plan, choices=("a choice",))
    began = search_began(plan, "the release that broke step", Progress(), disk="3 MiB")
    assert "mixed 1.0 to 1.6" in began.headline
    assert began.details[0] == "a choice"
    assert any("3 MiB" in detail for detail in began.details)
    left_out = [detail for detail in began.details if detail.startswith("left out: ")]
    assert any("1.1" in line and "yanked" in line for line in left_out)
