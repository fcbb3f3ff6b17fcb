"""`harness bisect` with a metric: one that is stable, and one that varies."""

from __future__ import annotations

from collections import Counter

import pytest

BODY = """
import json, os
import gauge

noise = int.from_bytes(os.urandom(4), "big") / 2**32 - 0.5
with open(os.environ["HARNESS_METRICS"], "w") as file:
    json.dump({"cost": gauge.COST + NOISE * noise}, file)
"""
SIGNATURE = '[tool.harness.signature]\nmetric = "cost"\nabove = 1.5\n'


@pytest.fixture
def gauge(house, write_repro):
    """Six releases; from 1.3 on they cost 2 instead of 1. The argument is the spread between runs."""
    for number in range(6):
        files = {"gauge.py": f"COST = {2.0 if number >= 3 else 1.0}\n"}
        house.add("gauge", f"1.{number}", files=files, uploaded=f"2024-0{number + 1}-01T12:00:00Z")
    return lambda noise: write_repro("gauge", body=BODY.replace("NOISE", str(noise)), tool=SIGNATURE)


def test_a_noisy_metric_is_reported_with_a_confidence_interval(harness, gauge):
    gauge(0.9)
    ended = harness("bisect", "gauge", "--repro", "gauge_step", "--depth", "release", "--json")
    assert (ended.code, ended.json["first_bad"]) == (0, "1.3"), ended.stderr
    effect = ended.json["effect"]
    assert effect["confidence"] == 0.99
    assert effect["good_runs"] >= 5
    assert effect["bad_runs"] >= 5
    assert 0.1 < effect["low"] <= effect["difference"] <= effect["high"] < 1.9
    assert effect["spread"] > 0
    assert effect["low"] != effect["high"]
    runs = Counter(step["release"] for step in ended.json["steps"])
    assert min(runs["1.2"], runs["1.3"]) >= 6
    assert {release for release, times in runs.items() if times > 1} == {"1.2", "1.3"}
    assert "99% interval" in ended.json["sentence"]


def test_a_stable_metric_takes_as_few_runs_as_an_exception(harness, gauge, write_repro):
    gauge(0.0)
    measured = harness("bisect", "gauge", "--repro", "gauge_step", "--depth", "release", "--json").json
    body = "import gauge\n\nif gauge.COST > 1:\n    raise RuntimeError('dear')\n"
    tool = '[tool.harness.signature]\nexception = "RuntimeError"\n'
    write_repro("gauge", name="gauge_raises", body=body, tool=tool)
    raised = harness("bisect", "gauge", "--repro", "gauge_raises", "--depth", "release", "--json").json
    assert measured["first_bad"] == raised["first_bad"] == "1.3"
    assert len(measured["steps"]) == len(raised["steps"])
    assert (measured["effect"]["good"], measured["effect"]["bad"], measured["effect"]["spread"]) == (1.0, 2.0, 0.0)
    assert raised["effect"] is None
