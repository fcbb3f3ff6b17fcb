"""Whole investigations of flaky bugs, simulated: a smaller benchmarks/simulated_investigations.py."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "simulated_investigations.py"


def test_wrong_answers_stay_within_the_stated_confidence():
    """Random histories, rates, skips, faults and lanes. 0.8 wrong answers are expected: more than 3, in 1 %."""
    investigate = runpy.run_path(str(SCRIPT))["investigate"]
    ended = [investigate(number, 1) for number in range(150)]
    ends = Counter(one.end for one in ended)
    assert ends["right"] >= 90
    assert sum(one.doubt for one in ended) <= 0.01 * (ends["right"] + ends["wrong"])
    assert ends["wrong"] <= 3
    assert max(one.runs for one in ended) <= 190


def test_luck_where_both_sides_fail_often_names_no_release():
    """Each of these was named wrong while most of the prior was on good sides that never fail.

    `benchmarks/simulated_investigations.py --pairs` has how often it happens.
    """
    investigate = runpy.run_path(str(SCRIPT))["investigate_a_pair"]
    ended = [investigate(number, 1).end for number in (40, 127, 148, 604, 763, 821, 951)]
    assert ended.count("wrong") <= 3  # of 4 wrong ones among the first 1,500 pairs
