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


def rows(history):
    return {row["release"]: (row["state"], row["reason"]) for row in history["releases"]}


def test_a_history_repeats_each_release_until_its_metric_is_clear(harness, gauge):
    gauge(0.9)
    words = ("gauge", "--repro", "gauge_step", "--from", "1.2", "--to", "1.3", "--max-gap", "1")
    asked = ("history", *words, "--json")
    ended = harness(*asked)
    assert [(w["last_good"], w["first_bad"]) for w in ended.json["windows"]] == [("1.2", "1.3")], ended.stderr
    runs = Counter(step["release"] for step in ended.json["steps"])
    assert set(runs.values()) <= {2, 8, 12}
    assert max(runs.values()) >= 8
    assert "99% interval" in "".join(reason for _, reason in rows(ended.json).values())
    again = harness(*asked)
    assert again.json["probes"] == 0
    assert rows(again.json) == rows(ended.json)


def test_a_history_gives_no_verdict_where_noise_crosses_the_bound(harness, house, write_repro):
    house.add("wide_gauge", "1.0", files={"gauge.py": "COST = 1.5\n"}, uploaded="2024-01-01T12:00:00Z")
    # One run of two is above the bound, whatever the dice: each run leaves a file, and counts them.
    body = BODY.replace("NOISE * noise", "(-1) ** len(os.listdir(COUNTER))").replace(
        "import gauge\n", 'import gauge\n\nCOUNTER = "COUNTERS"\n'
    )
    counters = harness.folder / "counters"
    counters.mkdir()
    counting = 'open(os.path.join(COUNTER, str(os.getpid())), "w").close()\n'
    write_repro("wide_gauge", body=body.replace("COUNTERS", str(counters)) + counting, tool=SIGNATURE)
    ended = harness("history", "wide_gauge", "--repro", "wide_gauge_step", "--max-gap", "1", "--json")
    assert ended.json["status"] == "unsure", ended.stderr
    assert not ended.json["windows"]
    ((state, reason),) = rows(ended.json).values()
    assert state == "skip"
    assert "6 of 12 runs" in reason
