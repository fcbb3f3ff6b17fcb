"""Remaining cells come first, new releases last and in order."""

from __future__ import annotations

from night_cells import night, record

from harness.matrix import Cell
from harness.watch.record import CellStatus, Past
from harness.watch.tonight import in_order


def cell(name: str, version: str = "1.0") -> Cell:
    return Cell(name, "step", choice={"packages.app": version})


def names(cells) -> list[str]:
    return [one.name for one in cells]


def test_remaining_cells_come_first_in_order():
    past = Past(
        cells={name: record(name) for name in "abcd"},
        last=night(record("d", CellStatus.TURNED), record("b", CellStatus.LEFT)),
    )
    assert names(in_order([cell(name) for name in "abcd"], past)) == ["d", "b", "a", "c"]


def test_new_releases_come_last_in_version_order():
    past = Past(cells={"known": record("known")})
    cells = [cell("new", "1.10"), cell("newer", "1.9"), cell("known", "2.0")]
    assert names(in_order(cells, past)) == ["known", "newer", "new"]
