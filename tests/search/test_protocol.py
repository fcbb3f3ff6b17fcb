"""What all searches share: pictures of positions, foresight, and the grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import Grid
from harness.search.protocol import PositionState, foresee, state_of

VERDICTS = st.sampled_from(list(Verdict))


@given(st.lists(VERDICTS, max_size=12), st.integers(1, 5))
def test_every_position_is_asked_once_in_order(verdicts, width):
    grid, ran = Grid(len(verdicts)), []
    while not grid.done:
        asked = grid.ask(width)
        assert asked
        assert grid.ask(width) == asked
        assert asked[0] not in grid.foresee(width)
        assert grid.remaining() == len(verdicts) - len(ran)
        ran.append(asked[0])
        grid.tell(asked[0], verdicts[asked[0]])
    assert ran == list(range(len(verdicts)))
    assert grid.ask() == grid.foresee(3) == ()
    assert list(grid.result.values()) == verdicts


def test_foreseen_positions_follow_requested_ones():
    assert Grid(5).foresee(2) == (1, 2)


def test_the_picture_shows_known_verdicts():
    grid = Grid(3)
    grid.tell(1, Verdict.BAD)
    assert "".join(state.symbol for state in grid.states) == "?B?"


def test_invalid_input_is_refused():
    grid = Grid(2)
    grid.tell(0, Verdict.GOOD)
    for position, verdict in ((2, Verdict.GOOD), (-1, Verdict.GOOD), (0, Verdict.BAD)):
        with pytest.raises(ValueError, match=r"position|told"):
            grid.tell(position, verdict)
    with pytest.raises(ValueError, match="fewer"):
        Grid(-1)


def plan(supposed):
    """Each verdict appends its first letter to the name of the next candidate, up to three letters."""
    name = "".join(verdict.value[0] for verdict in supposed.values())
    return (name,) if len(name) <= 2 else ()


def test_candidates_that_need_the_fewest_verdicts_come_first():
    assert foresee(4, plan=plan, requested=[""]) == ("b", "g", "bb", "bg")


def test_it_ends_with_the_search_and_excludes_current_requests():
    found = foresee(99, plan=plan, requested=["", "b"])
    assert len(found) == 2 + 4 - 1
    assert not {"", "b"}.intersection(found)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_always_shown(verdict):
    assert state_of(verdict, matters=False) is state_of(verdict, matters=True)
    assert state_of(verdict, matters=True).value == verdict.value


def test_an_untried_position_is_excluded_when_it_cannot_matter():
    assert state_of(None, matters=True) is PositionState.UNTRIED
    assert state_of(None, matters=False) is PositionState.EXCLUDED


def test_symbols_differ():
    assert len({state.symbol for state in PositionState}) == len(PositionState)
