"""Gaps and the points that split them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.search.bisection import cut, cut_gap, gaps_of, runs_to_close


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
