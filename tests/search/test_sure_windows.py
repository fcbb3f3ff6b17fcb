"""The sure scan for windows: deterministic bugs cost few runs more, and flaky ones are not named on luck."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import MOST_PASSES, LineSearch, SureScan, Trial, WindowScan, passes_needed

G, B, S = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


def drive(search: SureScan, verdict, lanes: int = 1, pick: int = 0) -> int:
    """Answer every request, one verdict at a time; return the number of runs."""
    runs = 0
    while waiting := search.ask(lanes):
        assert len(set(waiting)) == len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        trial = waiting[pick % len(waiting)]
        search.tell(trial, verdict(trial))
        runs += 1
        assert runs < 2000
    assert search.done
    assert search.remaining() == 0
    return runs


@given(st.lists(st.sampled_from([G, B, S]), min_size=1, max_size=12), st.integers(1, 3))
def test_a_deterministic_bug_has_the_windows_of_the_plain_scan(history, lanes):
    plain, sure = WindowScan(len(history), max_gap=1), SureScan(len(history), max_gap=1)
    while waiting := plain.ask():
        plain.tell(waiting[0], history[waiting[0]])
    drive(sure, lambda trial: history[trial.position], lanes, pick=1)
    assert sure.result.windows == plain.result.windows
    assert not sure.is_flaky
    assert not sure.result.doubtful


def test_one_long_window_costs_few_repetitions():
    history = [G] * 20 + [B] * 20 + [G] * 20
    plain, sure = WindowScan(60), SureScan(60)
    first = 0
    while waiting := plain.ask():
        plain.tell(waiting[0], history[waiting[0]])
        first += 1
    runs = drive(sure, lambda trial: history[trial.position])
    assert sure.result.windows == plain.result.windows
    assert runs <= first + 14


def test_a_lucky_pass_of_a_broken_release_opens_no_second_window():
    lucky = {Trial(24): G}
    search = SureScan(40)
    drive(search, lambda trial: lucky.get(trial, B if trial.position >= 10 else G))
    assert [(w.first_bad, w.last_bad) for w in search.result.windows] == [(10, 39)]


def simulate(good: float, bad: float, seed: int) -> str:
    dice = Random(f"{good} {bad} {seed}")
    first = dice.randrange(1, 30)
    search = SureScan(40)
    drive(search, lambda t: B if dice.random() < (bad if t.position >= first else good) else G, lanes=1 + seed % 2)
    found = search.result
    if found.doubtful or not found.windows:
        return "not sure"
    changes = [(w.started_after, w.first_bad) for w in found.windows]
    return "right" if changes == [(first - 1, first)] and found.windows[0].fixed_at is None else "wrong"


@pytest.mark.parametrize(("good", "bad"), [(0, 0.9), (0, 0.5), (0.1, 0.9), (0.3, 0.3)])
def test_few_flaky_histories_have_a_wrong_window(good, bad):
    ended = Counter(simulate(good, bad, seed) for seed in range(24))
    assert ended["wrong"] <= 1
    assert good or ended["right"] >= 15


def test_a_bug_that_shows_everywhere_now_and_then_is_doubtful():
    dice = Random(3)
    search = SureScan(30)
    drive(search, lambda _: B if dice.random() < 0.5 else G)
    assert search.is_flaky
    assert search.result.doubtful


def test_repetitions_that_are_skipped_end_in_doubt():
    history = [G] * 5 + [B] * 5
    search = SureScan(10)
    drive(search, lambda trial: history[trial.position] if trial.attempt == 0 else S)
    assert search.result.doubtful == (4, 5, 9)


def test_a_release_that_fails_once_at_the_end_of_the_range_opens_no_window():
    """It is no bad release by a single failure, and no other release shows that it is one."""
    search = SureScan(10)
    drive(search, lambda trial: B if trial.position >= 4 or trial == Trial(0, 0) else G)
    assert search.is_flaky
    assert 0 in search.result.doubtful
    alone = SureScan(1)
    assert drive(alone, lambda trial: B) == 2
    assert not alone.result.doubtful


def test_each_change_is_run_again_as_often_as_a_bisection_would():
    history = [G] * 8 + [B] * 8
    search, bisection = SureScan(16, max_gap=1), LineSearch(16, good=0, bad=15)
    runs = drive(search, lambda trial: history[trial.position])
    for position, verdict in enumerate(history):
        bisection.tell(Trial(position), verdict)
    again = 0
    while waiting := bisection.ask():
        bisection.tell(waiting[0], history[waiting[0].position])
        again += 1
    assert runs == 16 + again + 1  # and the newest release, which has no good one after it
    assert again >= 2


def test_a_wrong_position_is_refused():
    with pytest.raises(ValueError, match="position 3"):
        SureScan(3).tell(Trial(3), G)


def test_more_passes_are_needed_the_rarer_the_failure_is():
    needed = [passes_needed(failures, 8) for failures in (8, 6, 4, 2)]
    assert needed == sorted(needed)
    assert needed[0] <= 3
    assert needed[-1] > MOST_PASSES
