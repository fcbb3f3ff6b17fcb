"""The history of a matrix comes from its earlier nights: each cell keeps its last verdict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from night_cells import FIRST, SECOND, THIRD, known, night, record

from harness.watch.record import CellStatus, Past


def test_a_cell_keeps_the_verdict_of_the_last_night_that_judged_it():
    past = Past.of(
        (
            night(record("a"), record("b")),
            night(record("a", CellStatus.BROKEN), record("b", CellStatus.UNJUDGED, reason="why"), start=SECOND),
            night(record("a", CellStatus.LEFT), start=THIRD),
        ),
        "nightly",
    )
    assert past.cells["a"].standing is CellStatus.BROKEN
    assert past.cells["b"].standing is CellStatus.GOOD
    assert (past.left, past.last, past.unjudged) == (("a",), night(record("a", CellStatus.LEFT), start=THIRD), {})


def test_breaks_span_all_matrices_and_cells_belong_to_one():
    other = night(record("a"), breaks=(known(closed=THIRD),), start=THIRD)
    past = Past.of((other, night(record("a"), breaks=(known(),))), "another")
    assert past.cells == {}
    assert not past.breaks["ab"].is_open


@given(st.permutations([night(record("a", one), start=start) for one, start in
                        ((CellStatus.GOOD, FIRST), (CellStatus.BROKEN, SECOND),
                          (CellStatus.FLAKY, THIRD))]))  # fmt: skip
def test_the_order_of_the_files_does_not_matter(nights):
    assert Past.of(tuple(nights), "nightly").cells["a"].standing is CellStatus.FLAKY
