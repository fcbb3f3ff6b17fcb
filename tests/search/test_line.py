"""A line where no runs disagree: exhaustively over small histories, and by properties over large ones."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import bisection, knowing

from harness.model.verdict import Verdict
from harness.search import LineSearch, LineStatus, MovedEnd, PositionState, Search, Trial
from harness.search.survey import Stage, cut, cut_gap, gaps_of, runs_to_close, survey

VERDICTS = {"G": Verdict.GOOD, "B": Verdict.BAD, "S": Verdict.SKIP}


def drive(search: Search[Trial], history: str, lanes: int = 1, pick=lambda waiting: 0) -> list[int]:
    """Answer from a history, one verdict at a time; return the positions in the order they finished."""
    ended = []
    while waiting := search.ask(lanes):
        assert len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        trial = waiting[pick(waiting) % len(waiting)]
        assert trial.position not in ended
        search.tell(trial, VERDICTS[history[trial.position]])
        ended.append(trial.position)
    assert search.done
    assert search.foresee(5) == ()
    assert search.remaining() == 0
    return ended


def check(history: str, search: LineSearch, ended: list[int], *, find_fix: bool, window: range) -> None:
    """The result agrees with the history, whatever the order of runs."""
    result = search.result
    inside = [p for p in window if history[p] != "S"]
    from_bad = inside if find_fix else inside[::-1]
    assert set(ended) <= set(window)
    assert result.flaky == ()
    if not inside:
        assert result.status is LineStatus.INCONCLUSIVE
        assert result.suspects == tuple(window)
    elif history[from_bad[0]] == "G":
        assert result.status is LineStatus.NO_FAILURE
    elif result.boundary is None and len(inside) == 1 and inside[0] != (window[-1] if find_fix else window[0]):
        assert result.status is LineStatus.INCONCLUSIVE
        assert len(result.suspects) >= 1
    elif result.boundary is None:
        nothing = LineStatus.NOT_FIXED if find_fix else LineStatus.NOT_A_REGRESSION
        assert result.status is nothing
        assert history[from_bad[-1]] == "B"
        assert from_bad[-1] in ended
    else:
        older, newer = result.boundary
        assert (history[older], history[newer]) == (("B", "G") if find_fix else ("G", "B"))
        assert {older, newer} <= set(ended)
        assert set(history[older + 1 : newer]) <= {"S"}
        assert result.suspects == tuple(range(older + 1, newer + 1))
        if newer - older == 1:
            assert result.status is (LineStatus.FIXED if find_fix else LineStatus.FOUND)
        else:
            assert result.status is LineStatus.INCONCLUSIVE


def ends_of(count: int) -> list[tuple[int | None, int | None]]:
    """Older and newer end: none, one of them, both; and both further inside."""
    ends = [(None, None), (None, count - 1), (0, None)]
    if count > 1:
        ends.append((0, count - 1))
    if count > 3:
        ends += [(1, count - 2), (None, count - 2), (1, None)]
    return ends


@pytest.mark.parametrize("find_fix", [False, True])
@pytest.mark.parametrize(("lanes", "longest"), [(1, 6), (2, 5), (3, 4)])
def test_every_small_history_gives_a_correct_answer(find_fix, lanes, longest):
    """Every string of good, bad and skip, with and without ends, in both directions."""
    for count in range(1, longest + 1):
        for letters in product("GBS", repeat=count):
            history = "".join(letters)
            for older, newer in ends_of(count):
                good, bad = (newer, older) if find_fix else (older, newer)
                search = bisection(count, good=good, bad=bad, find_fix=find_fix)
                ended = drive(search, history, lanes, pick=lambda waiting: sum(t.position for t in waiting))
                window = range(older or 0, count if newer is None else newer + 1)
                check(history, search, ended, find_fix=find_fix, window=window)


@pytest.mark.parametrize("find_fix", [False, True])
def test_one_change_without_skips_is_found_in_the_fewest_runs(find_fix):
    """n positions between the ends take at most ceil(log2(n + 1)) runs besides the two ends."""
    for count in [*range(2, 20), 33, 34, 66]:
        older, newer = (0, count - 1)
        good, bad = (newer, older) if find_fix else (older, newer)
        for boundary in range(1, count):
            old, new = "BG" if find_fix else "GB"
            history = old * boundary + new * (count - boundary)
            search = bisection(count, good=good, bad=bad, find_fix=find_fix)
            ended = drive(search, history)
            assert search.result.boundary == (boundary - 1, boundary)
            assert len(ended) <= 2 + (count - 2).bit_length()
            # The same in the words of the acceptance: n counts the candidates for the first bad one.
            assert 2 ** (len(ended) - 2) < 2 * max(count - 1, 1)


@pytest.mark.parametrize("older", [None, 0])
@pytest.mark.parametrize("find_fix", [False, True])
def test_remaining_never_underestimates(older, find_fix):
    """`remaining` before each run is enough for the runs that follow, if none is a skip."""
    for count in range(2, 10):
        for letters in product("GB", repeat=count):
            good, bad = (None, older) if find_fix else (older, None)
            search = bisection(count, good=good, bad=bad, find_fix=find_fix)
            promised = []
            while waiting := search.ask():
                promised.append(search.remaining())
                search.tell(waiting[0], VERDICTS[letters[waiting[0].position]])
            assert all(left >= len(promised) - i for i, left in enumerate(promised))


def test_lanes_split_in_thirds_and_quarters():
    tried = {0: Verdict.GOOD, 24: Verdict.BAD}
    assert [t.position for t in knowing(bisection(25, good=0, bad=24), tried).ask(1)] == [12]
    assert sorted(t.position for t in knowing(bisection(25, good=0, bad=24), tried).ask(2)) == [8, 16]
    assert sorted(t.position for t in knowing(bisection(25, good=0, bad=24), tried).ask(3)) == [6, 12, 18]


def test_more_lanes_need_fewer_rounds():
    """Rounds of three lanes reduce the range to a quarter: 63 positions take three of them."""
    for boundary in range(1, 65):
        search = knowing(bisection(65, good=0, bad=64), {0: Verdict.GOOD, 64: Verdict.BAD})
        rounds = 0
        while waiting := search.ask(3):
            rounds += 1
            for trial in waiting:
                search.tell(trial, Verdict.BAD if trial.position >= boundary else Verdict.GOOD)
        assert search.result.boundary[1] == boundary
        assert rounds <= 3


def test_only_useless_runs_are_withdrawn():
    search = knowing(bisection(25, good=0, bad=24), {0: Verdict.GOOD, 24: Verdict.BAD})
    assert {t.position for t in search.ask(2)} == {8, 16}
    search.tell(Trial(8), Verdict.GOOD)
    assert Trial(16) in search.ask(2)
    search.tell(Trial(12), Verdict.BAD)
    assert Trial(16) not in search.ask(2)


def test_the_bad_end_comes_first_and_both_ends_with_two_lanes():
    assert bisection(9, good=0, bad=8).ask(1) == (Trial(8),)
    assert bisection(9, good=0, bad=8).ask(2) == (Trial(8), Trial(0))
    assert bisection(9, good=8, bad=0, find_fix=True).ask(3) == (Trial(0), Trial(8))
    assert bisection(9).ask(3) == (Trial(8),)


def test_without_a_good_end_it_steps_back_in_doubling_steps():
    search = bisection(100)
    assert drive(search, "G" * 70 + "B" * 30)[:7] == [99, 98, 97, 95, 91, 83, 67]
    assert search.result.boundary[1] == 70


def test_skipped_steps_are_stepped_over():
    search = bisection(100)
    ended = drive(search, "G" * 70 + "S" * 26 + "B" * 4)
    assert ended[:7] == [99, 98, 97, 95, 91, 83, 67]
    assert search.result.status is LineStatus.INCONCLUSIVE
    assert search.result.suspects == tuple(range(70, 97))


def test_a_stretch_of_untestable_releases_is_jumped_over():
    search = bisection(61, good=0, bad=60)
    ended = drive(search, "G" * 20 + "S" * 20 + "G" * 11 + "B" * 10)
    assert search.result.boundary[1] == 51
    assert sum(20 <= position < 40 for position in ended) <= 2


def test_untestable_old_releases_do_not_stop_the_steps():
    """Few of the 80 oldest positions, all untestable, are tried while a newer one is good."""
    search = bisection(200)
    ended = drive(search, "S" * 80 + "G" * 10 + "B" * 110)
    assert search.result.boundary == (89, 90)
    assert len(ended) < 24


def test_skips_draw_the_search_back_to_what_can_be_tested():
    """Of 20 old releases that all fail differently few are tried while a good one is close to the oldest bad one."""
    search = bisection(31, good=0, bad=30)
    ended = drive(search, "S" * 20 + "G" * 5 + "B" * 6)
    assert search.result.boundary == (24, 25)
    assert sum(position < 20 for position in ended) <= 3
    search = bisection(31)
    ended = drive(search, "S" * 23 + "G" * 2 + "B" * 6)
    assert search.result.boundary == (24, 25)
    assert sum(position < 23 for position in ended) <= 4


def test_moved_ends_are_reported():
    search = bisection(8, good=0, bad=7)
    drive(search, "SGGGBBSS")
    assert search.result.boundary == (3, 4)
    assert search.result.moved_ends == (MovedEnd(Verdict.BAD, 7, 5), MovedEnd(Verdict.GOOD, 0, 3))


def test_the_fix_is_the_first_good_release_after_the_bad_end():
    search = bisection(5, bad=1, find_fix=True)
    drive(search, "GBGGG")
    assert search.result.boundary == (1, 2)


def test_states_are_shown_as_symbols():
    search = bisection(7, good=1, bad=6)
    for position, letter in ((6, "B"), (1, "G"), (3, "S")):
        search.tell(Trial(position), VERDICTS[letter])
    assert "".join(state.symbol for state in search.states) == "-G?S??B"
    search.tell(Trial(4), Verdict.GOOD)
    assert search.states[2] is PositionState.EXCLUDED
    assert "".join(state.symbol for state in search.states) == "-G-SG?B"


def test_known_verdicts_are_not_requested_again():
    history = "GGGGGBBBBB"
    search = knowing(bisection(10), {p: VERDICTS[v] for p, v in enumerate(history)})
    assert search.done
    assert search.result.boundary == (4, 5)


def test_a_contradicting_second_verdict_is_refused():
    search = bisection(4)
    search.tell(Trial(3), Verdict.BAD)
    search.tell(Trial(3), Verdict.BAD)
    with pytest.raises(ValueError, match="was told bad before, and now good"):
        search.tell(Trial(3), Verdict.GOOD)


@pytest.mark.parametrize(
    "arguments",
    [
        {"count": 0},
        {"count": 3, "bad": 3},
        {"count": 3, "good": -1},
        {"count": 3, "good": 2, "bad": 1},
        {"count": 3, "good": 1, "bad": 1},
        {"count": 3, "good": 0, "bad": 1, "find_fix": True},
    ],
)
def test_impossible_questions_are_refused(arguments):
    with pytest.raises(ValueError):
        bisection(**arguments)


def test_a_position_that_is_not_there_is_refused():
    with pytest.raises(ValueError):
        knowing(bisection(3), {3: Verdict.GOOD})


@pytest.mark.parametrize("find_fix", [False, True])
def test_the_next_request_was_foreseen(find_fix):
    """Whether the request turns out good or bad, the next one is among the few foreseen."""
    for count, verdict in product(range(2, 30), (Verdict.GOOD, Verdict.BAD)):
        search = bisection(count, find_fix=find_fix)
        while waiting := search.ask():
            foreseen = search.foresee(4)
            assert len(set(foreseen)) == len(foreseen) <= 4
            assert waiting[0] not in foreseen
            search.tell(waiting[0], verdict if waiting[0].position % 3 else Verdict.BAD)
            assert set(search.ask()) <= set(foreseen)


def test_what_two_lanes_run_after_the_two_ends_was_foreseen():
    for count in range(4, 40):
        search = bisection(count, good=0)
        ends = search.ask(2)
        foreseen = search.foresee(2)
        search.tell(ends[0], Verdict.BAD)
        search.tell(ends[1], Verdict.GOOD)
        assert search.ask(2) == foreseen


@st.composite
def questions(draw):
    history = draw(st.text("GBS", min_size=1, max_size=40))
    positions = st.integers(0, len(history) - 1)
    older, newer = sorted((draw(positions), draw(positions)))
    older = draw(st.sampled_from([None, older]))
    newer = draw(st.sampled_from([None, newer]))
    if older is not None and older == newer:
        older = None
    return history, older, newer


@settings(deadline=None, max_examples=300)
@given(questions(), st.booleans(), st.integers(1, 5), st.lists(st.integers(0, 9)), st.data())
def test_order_and_cancelled_runs_never_mislead(question, find_fix, lanes, order, data):
    """Verdicts in any order, from earlier, foreseen and cancelled runs, give the right answer."""
    history, older, newer = question
    good, bad = (newer, older) if find_fix else (older, newer)
    known = data.draw(st.sets(st.integers(0, len(history) - 1), max_size=4))
    tried = {p: VERDICTS[history[p]] for p in known}
    search = knowing(bisection(len(history), good=good, bad=bad, find_fix=find_fix), tried)
    told = {Trial(p) for p in known}
    steps = 0
    while waiting := search.ask(lanes):
        assert not told.intersection(waiting)
        turn = order[steps % len(order)] if order else 0
        foreseen = search.foresee(2)
        assert not set(foreseen).intersection(waiting, told)
        ending = [foreseen[0]] if turn == 9 and foreseen else [waiting[turn % len(waiting)]]
        for trial in ending:
            told.add(trial)
            search.tell(trial, VERDICTS[history[trial.position]])
        steps += 1
    assert steps <= len(history)
    window = range(older or 0, len(history) if newer is None else newer + 1)
    ended = [t.position for t in told if t.position in window and t.attempt == 0]
    check(history, search, ended, find_fix=find_fix, window=window)


def test_it_implements_the_search_protocol():
    search: Search[Trial] = bisection(3)
    assert search.ask(0) == ()


LETTERS = {"G": Verdict.GOOD, "B": Verdict.BAD, "S": Verdict.SKIP, "?": None}


@pytest.mark.parametrize(
    ("line", "steps", "stage", "wanted"),
    [
        ("????", False, Stage.BAD_END, (0, 3)),
        ("????", True, Stage.BAD_END, (0,)),
        ("S??S", False, Stage.BAD_END, (1, 2)),
        ("?G??", False, Stage.BAD_END, (0,)),
        ("G???", False, Stage.NO_BAD, ()),
        ("SS", False, Stage.UNTESTABLE, ()),
        ("B???", False, Stage.GOOD_END, (3,)),
        ("B??S", False, Stage.STEPS, (1, 2)),
        ("B??B", False, Stage.NO_GOOD, ()),
        ("BSSS", False, Stage.ALONE, ()),
        ("B", True, Stage.NO_GOOD, ()),
        ("BSSB", True, Stage.NO_GOOD, ()),
        ("BSS", True, Stage.ALONE, ()),
        ("B?????????", True, Stage.STEPS, (1, 2, 4, 8, 9)),
        ("B?B???????", True, Stage.STEPS, (4, 8, 9)),
        ("BBB?S???SS", True, Stage.STEPS, (3,)),
        ("B??G", False, Stage.CUTS, ()),
        ("BBSG", False, Stage.BOUNDARY, ()),
        ("BG?B?G", False, Stage.BOUNDARY, ()),
    ],
)
def test_the_stage_and_the_wanted_runs(line, steps, stage, wanted):
    found = survey([LETTERS[letter] for letter in line], steps=steps)
    assert (found.stage, found.wanted) == (stage, wanted)


def test_the_change_nearest_to_the_bad_end_is_taken():
    found = survey([LETTERS[letter] for letter in "B?BB?GBG"], steps=False)
    assert (found.bad, found.good, found.open) == (3, 5, (4,))


def test_gaps_are_contiguous():
    assert gaps_of([7, 1, 2, 3, 9, 8]) == [range(1, 4), range(7, 10)]
    assert gaps_of([]) == []


@given(st.integers(0, 100), st.integers(1, 200), st.integers(0, 12))
def test_a_gap_is_split_evenly(start, length, points):
    gap = range(start, start + length)
    chosen = cut_gap(gap, points)
    edges = [start - 1, *chosen, gap.stop]
    parts = [b - a for a, b in pairwise(edges)]
    assert len(chosen) == min(points, length)
    assert max(parts) - min(parts) <= 1


@given(st.sets(st.integers(0, 60)), st.integers(0, 12))
def test_a_split_gives_each_position_once(positions, n):
    chosen = cut(gaps_of(positions), n)
    assert len(set(chosen)) == len(chosen) == min(n, len(positions))
    assert positions.issuperset(chosen)


def test_the_widest_and_most_central_gap_is_split():
    assert cut([range(3), range(5, 12), range(14, 16)], 1) == [8]
    assert cut([range(1), range(2, 3), range(4, 5), range(6, 7), range(8, 9)], 1) == [4]


@given(st.integers(0, 5000))
def test_runs_to_close_one_gap_is_the_least_possible(n):
    """n + 1 answers need at least log2(n + 1) verdicts with two values."""
    runs = runs_to_close([range(n)])
    assert 2**runs >= n + 1 > 2**runs / 2
