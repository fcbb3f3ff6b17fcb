"""Nights by a metric: a step in a number is a break, and noise around the bound is not."""

from __future__ import annotations

REPRO = """
# /// script
# dependencies = ["app"]
# [tool.harness.signature]
# metric = "cost"
# above = 1.5
# ///
import json, os

import app

with open(os.environ["HARNESS_METRICS"], "w") as file:
    json.dump({"cost": app.step()}, file)
"""
# Every other run is above the bound: each leaves a file, and counts them.
NOISE = "import os; open(f'{folder}/{{os.getpid()}}', 'w').close(); return 1 + len(os.listdir('{folder}')) % 2"


def cells(ended):
    return [(cell["standing"], cell["reason"]) for cell in ended.json["cells"]]


def test_a_step_in_a_metric_is_a_break_with_its_culprit(nights):
    (nights.harness.folder / "repros" / "step.py").write_text(REPRO, encoding="utf-8")
    ((standing, reason),) = cells(nights.run("2024-02-01", "--json"))
    assert (standing, "2 runs" in reason) == ("good", True)
    nights.helper("1.1", "2024-02-01", "return 2")
    ended = nights.run("2024-02-02", "--json")
    assert [standing for standing, _ in cells(ended)] == ["broken"], ended.stderr
    assert any("helper 1.1" in text for text in nights.reports().values())


def test_noise_around_the_bound_is_no_break(nights):
    (nights.harness.folder / "repros" / "step.py").write_text(REPRO, encoding="utf-8")
    nights.run("2024-02-01", "--json")
    counted = nights.harness.folder / "counted"
    counted.mkdir()
    nights.helper("1.1", "2024-02-01", NOISE.format(folder=counted))
    ended = nights.run("2024-02-02", "--json", HARNESS_SANDBOX="off")
    ((standing, reason),) = cells(ended)
    assert standing == "not judged", reason
    assert "6 of 12 runs" in reason
    assert nights.reports() == {}
