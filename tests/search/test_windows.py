"""The scan for windows: histories with one window, several, and skips at their edges."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import PositionState, Search, Window, WindowScan
from harness.search.survey import gaps_of
from harness.search.windows import stride_for

NOT_RUN = (PositionState.UNTRIED, PositionState.EXCLUDED)

VERDICTS = {"G": Verdict.GOOD, "B": Verdict.BAD, "S": Verdict.SKIP}


def drive(search: Search[int], history: str, lanes: int = 1, pick: int = 0) -> list[int]:
    """Answer from a history, one verdict at a time; return the positions in the order they finished."""
    ended = []
    while waiting := search.ask(lanes):
        assert len(set(waiting)) == len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        position = waiting[pick % len(waiting)]
        assert position not in ended
        search.tell(position, VERDICTS[history[position]])
        ended.append(position)
    assert search.done
    assert search.remaining() == 0
    return ended


def blocks(*parts: tuple[str, int]) -> str:
    return "".join(letter * length for letter, length in parts)


def windows_of(history: str) -> list[tuple[int, int, int | None, int | None]]:
    """The exact answer, from every verdict of the history."""
    found, before, run = [], None, []
    for i, letter in [(i, v) for i, v in enumerate(history) if v != "S"] + [(None, "G")]:
        if letter == "B":
            run.append(i)
        else:
            if run:
                found.append((run[0], run[-1], i, before))
            before, run = i, []
    return found


def seen(search: WindowScan) -> list[tuple[int, int, int | None, int | None]]:
    return [(w.first_bad, w.last_bad, w.fixed_at, w.started_after) for w in search.result.windows]


def widest_unseen(search: WindowScan) -> int:
    """The length of the longest stretch of positions that were not run."""
    return max(map(len, gaps_of(p for p, state in enumerate(search.states) if state in NOT_RUN)), default=0)


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_stride_of_one_finds_every_window(lanes):
    for count in range(1, 8):
        for letters in product("GBS", repeat=count):
            search = WindowScan(count, max_gap=1)
            drive(search, "".join(letters), lanes, pick=1)
            assert seen(search) == windows_of("".join(letters))
            assert widest_unseen(search) == 0


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_several_windows_are_found_in_under_a_third_of_the_runs(lanes):
    history = blocks(("G", 31), ("B", 14), ("G", 40), ("B", 9), ("G", 36))
    search = WindowScan(len(history))
    ended = drive(search, history, lanes)
    assert search.result.windows == (Window(31, 44, 45, 30), Window(85, 93, 94, 84))
    assert search.result.suspects == ()
    assert lanes > 1 or 3 * len(ended) < len(history)


def test_one_window_anywhere_takes_less_than_a_third():
    for start in range(60 - 8):
        history = blocks(("G", start), ("B", 8), ("G", 52 - start))
        search = WindowScan(60)
        assert 3 * len(drive(search, history)) < 60
        assert seen(search) == windows_of(history)


def test_a_window_can_be_open_at_either_end():
    search = WindowScan(40)
    drive(search, blocks(("B", 12), ("G", 15), ("B", 13)))
    assert search.result.windows == (Window(0, 11, 12, None), Window(27, 39, None, 26))


def test_the_newest_then_the_oldest_comes_first():
    assert WindowScan(50).ask(2) == (49, 0)
    assert WindowScan(1).ask(2) == (0,)


def test_max_gap_limits_the_unseen_stretch():
    for count, gap in product((1, 2, 9, 50), (1, 2, 3, 7, 60)):
        search = WindowScan(count, max_gap=gap)
        drive(search, "G" * count)
        assert search.result.windows == ()
        assert widest_unseen(search) <= gap - 1


def test_known_verdicts_replace_runs():
    history = blocks(("G", 20), ("B", 10), ("G", 20))
    known = {p: VERDICTS[history[p]] for p in range(0, 50, 3)}
    search = WindowScan(50, known)
    ended = drive(search, history)
    assert not set(ended).intersection(known)
    assert len(ended) <= 5
    assert search.result.windows == (Window(20, 29, 30, 19),)


def test_skips_at_an_edge_are_suspects_of_that_window():
    search = WindowScan(30, max_gap=4)
    drive(search, blocks(("G", 10), ("S", 2), ("B", 8), ("G", 10)))
    assert search.result.windows == (Window(12, 19, 20, 9, suspects=(10, 11)),)
    assert search.result.suspects == (10, 11)


def test_the_scan_looks_closer_beside_a_skip():
    search = WindowScan(65, max_gap=16)
    ended = drive(search, blocks(("G", 24), ("S", 16), ("G", 25)))
    assert search.result.windows == ()
    assert sum(24 <= position < 40 for position in ended) <= 4


def test_a_skip_at_the_end_does_not_refine_the_whole_scan():
    """The newest release cannot be tested: one more run beside it, and the usual stride elsewhere."""
    plain, skipped = WindowScan(257, max_gap=8), WindowScan(257, max_gap=8)
    runs = len(drive(plain, "G" * 257))
    assert len(drive(skipped, "G" * 256 + "S")) <= runs + 4


def test_states_are_shown_as_symbols():
    search = WindowScan(9, max_gap=4)
    for position, letter in ((0, "G"), (4, "G"), (8, "B")):
        search.tell(position, VERDICTS[letter])
    assert "".join(state.symbol for state in search.states) == "G---G???B"


def test_invalid_questions_and_verdicts_are_refused():
    with pytest.raises(ValueError, match="at least one position"):
        WindowScan(0)
    with pytest.raises(ValueError, match="max_gap"):
        WindowScan(3, max_gap=0)
    search = WindowScan(3, {1: Verdict.GOOD})
    with pytest.raises(ValueError, match="was told good before"):
        search.tell(1, Verdict.BAD)
    with pytest.raises(ValueError, match="not between 0 and 2"):
        search.tell(3, Verdict.BAD)


def test_the_stride_leaves_runs_for_bisections():
    for count in range(50, 500):
        stride = stride_for(count)
        scan = -(-(count - 1) // stride) + 1
        assert 3 * (scan + 2 * (stride - 1).bit_length()) < count
    assert stride_for(1) == 1


@settings(deadline=None, max_examples=200)
@given(
    st.text("GBS", min_size=1, max_size=40) | st.text("GB", min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(1, 9) | st.none(),
)
def test_every_edge_is_a_real_change_between_neighbours(history, lanes, pick, max_gap):
    search = WindowScan(len(history), max_gap=max_gap)
    promised = []
    ended = {}
    while waiting := search.ask(lanes):
        assert not set(search.foresee(3)).intersection(waiting)
        promised.append(search.remaining())
        position = waiting[pick % len(waiting)]
        ended[position] = history[position]
        search.tell(position, VERDICTS[history[position]])
    if "S" not in history and lanes == 1:
        assert all(left >= len(promised) - i for i, left in enumerate(promised))
    for window in search.result.windows:
        assert ended[window.first_bad] == ended[window.last_bad] == "B"
        for edge, other in ((window.first_bad, window.started_after), (window.last_bad, window.fixed_at)):
            if other is not None:
                assert ended[other] == "G"
                low, high = sorted((edge, other))
                assert set(history[low + 1 : high]) <= {"S"}
                assert set(window.suspects) >= set(range(low + 1, high))


def test_all_positions_run_if_most_would():
    """A scan that ran five of seven positions missed a window of one."""
    for count in range(1, 20):
        for hidden in range(count):
            search = WindowScan(count)
            while waiting := search.ask():
                search.tell(waiting[0], Verdict.BAD if waiting[0] == hidden else Verdict.GOOD)
            assert [(w.first_bad, w.last_bad) for w in search.result.windows] == [(hidden, hidden)]
    assert stride_for(60) > 1
