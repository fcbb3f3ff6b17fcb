"""Grids and scans by a number: how many runs a position takes, and how often noise is told as a verdict."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import ByNumber, Grid, Reading, Trial, WindowScan, readings_of

BOUND = 10.0


def reading(value):
    is_bad = not value <= BOUND
    return Reading(value, math.inf if math.isnan(value) else value - BOUND, Verdict.BAD if is_bad else Verdict.GOOD)


def drive(inner, value, lanes=1, pick=lambda waiting: 0):
    """Answer until done: a value of None is a run that could not be judged. All values, by trial."""
    seen = {}
    search = ByNumber(inner, lambda trial: None if seen[trial] is None else reading(seen[trial]))
    while waiting := search.ask(lanes):
        assert len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        assert not set(search.foresee(3)) & set(waiting)
        assert search.remaining() > 0
        trial = waiting[pick(waiting) % len(waiting)]
        seen[trial] = value(trial)
        search.tell(trial, Verdict.SKIP if seen[trial] is None else reading(seen[trial]).verdict)
    assert search.done
    assert search.remaining() == 0
    return seen


@pytest.mark.parametrize("value", [9.0, 10.0, 11.0, math.inf, -math.inf, math.nan])
def test_a_number_that_is_the_same_each_time_takes_two_runs(value):
    grid = Grid(1)
    assert len(drive(grid, lambda _: value)) == 2
    assert grid.result == {0: reading(value).verdict}


def test_a_number_that_hardly_varies_takes_two_runs():
    dice = Random(1)
    grid = Grid(2)
    assert len(drive(grid, lambda trial: (8.0, 12.0)[trial.position] + 0.01 * dice.random())) == 4
    assert grid.result == {0: Verdict.GOOD, 1: Verdict.BAD}


def test_a_number_that_varies_on_one_side_takes_eight_runs():
    grid = Grid(2)
    assert len(drive(grid, lambda trial: (8.0, 12.0)[trial.position] + 1.5 * (-1) ** trial.attempt)) == 16
    assert grid.result == {0: Verdict.GOOD, 1: Verdict.BAD}


def test_one_stray_run_of_twelve_does_not_matter_and_two_do():
    for strays, told in ((1, Verdict.GOOD), (2, Verdict.SKIP), (10, Verdict.SKIP), (11, Verdict.BAD)):
        grid = Grid(1)
        values = [11.0 + number if number < strays else 9.0 - number for number in range(12)]
        values.sort(reverse=strays <= 2)  # the strays first
        assert len(drive(grid, lambda trial, values=values: values[trial.attempt])) == 12
        assert grid.result == {0: told}


@pytest.mark.parametrize("past", [0.0, 0.05, 0.2, 0.5])
def test_noise_around_the_bound_gets_the_wrong_verdict_in_about_one_percent(past):
    """The median is inside the bound by so many standard deviations."""
    dice, wrong = Random(3), 0
    for _ in range(500):
        grid = Grid(1)
        drive(grid, lambda _: dice.gauss(BOUND - past, 1.0))
        wrong += grid.result[0] is Verdict.BAD
    assert wrong <= 15


def test_a_run_without_a_number_has_its_own_verdict():
    grid = Grid(2)
    seen = {}
    search = ByNumber(grid, lambda trial: None)
    while waiting := search.ask():
        seen[waiting[0]] = [Verdict.SKIP, Verdict.BAD][waiting[0].position]
        search.tell(waiting[0], seen[waiting[0]])
    assert seen.keys() == {Trial(0), Trial(1)}
    assert grid.result == {0: Verdict.SKIP, 1: Verdict.BAD}


def test_a_position_whose_further_runs_are_lost_is_skipped():
    grid = Grid(1)
    seen = drive(grid, lambda trial: None if trial.attempt else 12.0)
    assert 2 < len(seen) < 12
    assert grid.result == {0: Verdict.SKIP}


def test_a_scan_by_a_number_sees_windows_through_noise():
    dice = Random(4)
    scan = WindowScan(20, max_gap=1)
    drive(scan, lambda trial: (12.0 if 5 <= trial.position < 9 else 8.0) + dice.uniform(-1.9, 1.9), lanes=2)
    assert [(w.first_bad, w.last_bad) for w in scan.result.windows] == [(5, 8)]


def test_the_interval_of_the_median_is_that_of_the_sign_test():
    """Of 8 runs the least and the greatest, of 12 the second on either side: Dixon and Mood's table for 0.99."""
    eight, twelve = (readings_of([reading(float(value)) for value in range(runs)]) for runs in (8, 12))
    assert (eight.low, eight.high, eight.confidence) == (0, 7, 0.99)
    assert (twelve.low, twelve.high, twelve.confidence) == (1, 10, 0.99)
    assert readings_of([reading(1.0)] * 7).confidence == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.floats(0, 6), st.floats(0, 0.5), st.integers(0, 2**32))
def test_it_ends_whatever_the_verdicts(count, lanes, noise, skips, seed):
    dice = Random(seed)
    grid = Grid(count)
    value = lambda trial: None if dice.random() < skips else trial.position + 6 + dice.gauss(0, noise)  # noqa: E731
    seen = drive(grid, value, lanes, pick=lambda waiting: dice.randrange(4))
    assert len(seen) <= count * 17
    assert grid.result.keys() == set(range(count))
