"""The picture of a search over positions."""

import pytest

from harness.model.verdict import Verdict
from harness.search.protocol import PositionState, state_of


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_is_always_shown(verdict):
    assert state_of(verdict, matters=False) is state_of(verdict, matters=True)
    assert state_of(verdict, matters=True).value == verdict.value


def test_an_untried_position_is_excluded_when_it_cannot_matter():
    assert state_of(None, matters=True) is PositionState.UNTRIED
    assert state_of(None, matters=False) is PositionState.EXCLUDED


def test_symbols_differ():
    assert len({state.symbol for state in PositionState}) == len(PositionState)
