"""Histories are stored by their question, as JSON that any program can read."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from packaging.version import Version
from test_history_page import HISTORY, REPRO

from harness.history import HistoryPlan
from harness.model import Device, Release
from harness.planning.plan import Plan
from harness.redact import Private
from harness.report.history.archive import history_id, keep_history
from harness.request.question import Question
from harness.store import Store


@pytest.fixture
def made(interpreter):
    releases = tuple(Release("shop", Version(f"1.{minor}")) for minor in (0, 1, 2, 3, 5))
    return HistoryPlan(
        Plan(Question("shop", REPRO), REPRO, interpreter, Device.CPU, releases, None, None, (), "none", ("till",), ()),
        4,
    )


def test_a_record_is_the_json_of_the_history_with_its_question(made, tmp_path):
    named = keep_history(Store(tmp_path), made, HISTORY, "2026-01-02", Private({"no price": "<secret>"}))
    text = (tmp_path / "histories" / f"{named}.json").read_text(encoding="utf-8")
    kept = json.loads(text, parse_constant=pytest.fail)
    assert (kept["schema"], kept["id"], kept["kept"], kept["requirements"]) == (1, named, "2026-01-02", ["till"])
    assert (kept["windows"][0]["first_bad"], kept["windows"][0]["certain"]) == ("1.2", False)
    rows = {row["release"]: row for row in kept["releases"]}
    assert rows["1.2"]["measured"] == {"loss": None}
    assert rows["1.2"]["reason"] == "ValueError: <secret>"
    assert rows["1.1"]["observation"] is None


def test_a_finer_scan_replaces_the_record(made):
    assert history_id(evolve(made, stride=1)) == history_id(made)
    shorter = evolve(made, plan=evolve(made.plan, releases=made.plan.releases[:-1]))
    assert history_id(shorter) != history_id(made)
    assert history_id(evolve(made, plan=evolve(made.plan, as_of="era"))) != history_id(made)
