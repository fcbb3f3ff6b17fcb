"""The scan for windows: histories with one window, several, skips at their edges, and flaky bugs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import MOST_PASSES, CoarseGrid, LineSearch, PositionState, Reading, Scan, Trial, passes_needed
from harness.search.survey import gaps_of
from harness.search.windows import stride_for

G, B, S = Verdict.GOOD, Verdict.BAD, Verdict.SKIP
VERDICTS = {"G": G, "B": B, "S": S}


def drive(search, verdict, lanes: int = 1, pick: int = 0) -> list[int]:
    """Answer every request, one verdict at a time; return the positions in the order they ended."""
    ended = []
    while waiting := search.ask(lanes):
        assert len(set(waiting)) == len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        assert not set(search.foresee(3)).intersection(waiting)
        trial = waiting[pick % len(waiting)]
        search.tell(trial, verdict(trial))
        ended.append(trial.position)
        assert len(ended) < 2000
    assert search.done
    assert search.remaining() == 0
    return ended


def scanned(history: str, max_gap: int | None = None, **options) -> tuple[Scan, list[int]]:
    scan = Scan(len(history), max_gap or stride_for(len(history)))
    return scan, drive(scan, lambda trial: VERDICTS[history[trial.position]], **options)


def blocks(*parts: tuple[str, int]) -> str:
    return "".join(letter * length for letter, length in parts)


def changes_of(history: str) -> list[tuple[int, int]]:
    """The exact answer, from every verdict of the history."""
    judged = [position for position, letter in enumerate(history) if letter != "S"]
    return [(a, b) for a, b in pairwise(judged) if history[a] != history[b]]


def changes(scan: Scan) -> list[tuple[int, int]]:
    return [(part.older, part.newer) for part, _ in scan.changes]


def is_sure(scan: Scan) -> bool:
    return all(part.is_shown(search) for part, search in scan.changes)


def widest(ended: list[int], count: int) -> int:
    """The length of the longest stretch of positions that were not run."""
    return max(map(len, gaps_of(set(range(count)).difference(ended))), default=0)


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_stride_of_one_finds_every_change(lanes):
    for count in range(1, 5):
        for letters in product("GBS", repeat=count):
            history = "".join(letters)
            scan, ended = scanned(history, 1, lanes=lanes, pick=1)
            assert changes(scan) == changes_of(history)
            assert set(ended) == set(range(count))
            assert is_sure(scan)
            assert not scan.is_flaky


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_several_windows_are_found_in_under_a_third_of_the_releases(lanes):
    history = blocks(("G", 31), ("B", 14), ("G", 40), ("B", 9), ("G", 36))
    scan, ended = scanned(history, lanes=lanes)
    assert changes(scan) == changes_of(history)
    assert is_sure(scan)
    assert lanes > 1 or 3 * len(set(ended)) < len(history)


def test_a_window_can_be_open_at_either_end():
    scan, ended = scanned(blocks(("B", 12), ("G", 15), ("B", 13)))
    assert changes(scan) == [(11, 12), (26, 27)]
    assert min(Counter(ended)[end] for end in (0, 39)) >= 2  # no change shows that they are bad


def test_the_newest_then_the_oldest_comes_first():
    assert CoarseGrid(50, 8).ask(2) == (Trial(49), Trial(0))
    assert CoarseGrid(1, 1).ask(2) == (Trial(0),)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 5), st.integers(0, 4))
def test_no_gap_is_wider_than_it_may_be(count, gap, lanes, pick):
    ended = drive(CoarseGrid(count, gap), lambda _: G, lanes, pick)
    assert len(ended) == len(set(ended))
    assert widest(ended, count) <= gap - 1


def test_known_verdicts_replace_runs():
    history = blocks(("G", 20), ("B", 10), ("G", 20))
    scan = Scan(50, 8)
    for position in range(0, 50, 3):
        scan.tell(Trial(position), VERDICTS[history[position]])
    first = {p for p in drive(scan, lambda trial: VERDICTS[history[trial.position]]) if p % 3}
    assert len(first) <= 5
    assert changes(scan) == [(19, 20), (29, 30)]


def test_skips_at_an_edge_leave_the_change_between_its_judged_neighbours():
    scan, _ = scanned(blocks(("G", 10), ("S", 2), ("B", 8), ("G", 10)), 4)
    assert changes(scan) == [(9, 12), (19, 20)]
    assert scan.changes[0][1].result.suspects == (10, 11, 12)


def test_the_scan_looks_closer_beside_a_skip():
    history = blocks(("G", 24), ("S", 16), ("G", 25))
    ended = drive(CoarseGrid(65, 16), lambda trial: VERDICTS[history[trial.position]])
    assert sum(24 <= position < 40 for position in ended) <= 4


def test_a_skip_at_the_end_does_not_refine_the_whole_scan():
    """The newest release cannot be tested: one more run beside it, and the usual stride elsewhere."""
    runs = len(drive(CoarseGrid(257, 8), lambda _: G))
    assert len(drive(CoarseGrid(257, 8), lambda trial: S if trial.position == 256 else G)) <= runs + 4


def test_states_are_shown_as_symbols():
    scan = Scan(9, 4)
    for position, letter in ((0, "G"), (4, "G"), (8, "B")):
        scan.tell(Trial(position), VERDICTS[letter])
    assert "".join(state.symbol for state in scan.states) == "G---G???B"
    assert set(Scan(9, 4).states) == {PositionState.UNTRIED, PositionState.EXCLUDED}


def test_invalid_questions_and_verdicts_are_refused():
    with pytest.raises(ValueError, match="at least one position"):
        Scan(0, 1)
    with pytest.raises(ValueError, match="max_gap"):
        Scan(3, 0)
    scan = Scan(3, 1)
    scan.tell(Trial(1), G)
    with pytest.raises(ValueError, match="was told good before"):
        scan.tell(Trial(1), B)
    with pytest.raises(ValueError, match="not between 0 and 2"):
        scan.tell(Trial(3), B)


def test_the_stride_leaves_runs_for_bisections():
    for count in range(50, 500):
        stride = stride_for(count)
        scan = -(-(count - 1) // stride) + 1
        assert 3 * (scan + 2 * (stride - 1).bit_length()) < count
    assert stride_for(1) == 1
    assert all(stride_for(count) == 1 for count in range(1, 20))  # else a window of one could hide, for few runs less


@settings(deadline=None, max_examples=40)
@given(
    st.text("GBS", min_size=1, max_size=30) | st.text("GB", min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(1, 9),
)
def test_every_edge_is_a_real_change_between_neighbours(history, lanes, pick, max_gap):
    scan, ended = scanned(history, max_gap, lanes=lanes, pick=pick)
    for older, newer in changes(scan):
        assert {history[older], history[newer]} == {"G", "B"}
        assert {older, newer} <= set(ended)
        assert set(history[older + 1 : newer]) <= {"S"}
    assert is_sure(scan)


# -- flaky bugs


def test_a_deterministic_bug_costs_few_repetitions():
    scan, ended = scanned(blocks(("G", 20), ("B", 20), ("G", 20)))
    assert len(ended) <= len(set(ended)) + 14
    assert changes(scan) == [(19, 20), (39, 40)]


def test_a_lucky_pass_of_a_broken_release_opens_no_second_window():
    scan = Scan(40, 4)
    drive(scan, lambda trial: G if trial == Trial(24) else B if trial.position >= 10 else G)
    assert changes(scan) == [(9, 10)]


def simulate(good: float, bad: float, seed: int) -> str:
    dice = Random(f"{good} {bad} {seed}")
    first = dice.randrange(1, 30)
    scan = Scan(40, stride_for(40))
    drive(scan, lambda t: B if dice.random() < (bad if t.position >= first else good) else G, lanes=1 + seed % 2)
    if not is_sure(scan) or not scan.changes:
        return "not sure"
    return "right" if changes(scan) == [(first - 1, first)] else "wrong"


@pytest.mark.parametrize(("good", "bad"), [(0, 0.9), (0, 0.5), (0.1, 0.9), (0.3, 0.3)])
def test_few_flaky_histories_have_a_wrong_window(good, bad):
    ended = Counter(simulate(good, bad, seed) for seed in range(24))
    assert ended["wrong"] <= 1
    assert good or ended["right"] >= 15


def test_a_bug_that_shows_everywhere_now_and_then_is_doubtful():
    dice = Random(3)
    scan = Scan(30, stride_for(30))
    drive(scan, lambda _: B if dice.random() < 0.5 else G)
    assert scan.is_flaky
    assert not scan.changes or not is_sure(scan)


def test_repetitions_that_are_skipped_end_in_doubt():
    history = [G] * 5 + [B] * 5
    scan = Scan(10, 1)
    drive(scan, lambda trial: history[trial.position] if trial.attempt == 0 else S)
    assert changes(scan) == [(4, 5)]
    assert not is_sure(scan)


def test_a_release_that_fails_once_at_the_end_of_the_range_is_no_sure_change():
    """It is no bad release by a single failure, and no other release shows that it is one."""
    scan = Scan(10, 1)
    drive(scan, lambda trial: B if trial.position >= 4 or trial == Trial(0) else G)
    assert scan.is_flaky
    assert changes(scan)[0] == (0, 1)
    assert not is_sure(scan)
    assert drive(Scan(1, 1), lambda _: B) == [0, 0]


def test_each_change_is_run_again_as_often_as_a_bisection_would():
    history = [G] * 8 + [B] * 8
    _, ended = scanned(blocks(("G", 8), ("B", 8)), 1)
    bisection = LineSearch(16, good=0, bad=15)
    for position, verdict in enumerate(history):
        bisection.tell(Trial(position), verdict)
    again = len(drive(bisection, lambda trial: history[trial.position]))
    assert len(ended) == 16 + again + 1  # and the newest release, which has no good one after it
    assert again >= 2


def test_a_scan_by_a_number_sees_windows_through_noise():
    dice, values = Random(4), {}

    def reading(trial: Trial) -> Reading:
        value = values.setdefault(trial, (12.0 if 5 <= trial.position < 9 else 8.0) + dice.uniform(-1.9, 1.9))
        return Reading(value, value - 10, B if value > 10 else G)

    scan = Scan(20, 1, reading)
    drive(scan, lambda trial: reading(trial).verdict, lanes=2)
    assert changes(scan) == [(4, 5), (8, 9)]
    assert is_sure(scan)


def test_more_passes_are_needed_the_rarer_the_failure_is():
    needed = [passes_needed(failures, 8) for failures in (8, 6, 4, 2)]
    assert needed == sorted(needed)
    assert needed[0] <= 3
    assert needed[-1] > MOST_PASSES
