"""The state of a matrix: from runs, from the store, and from what prevents a cell."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import SIGNED, repro_text, sessions_of

from harness.matrix import Cell
from harness.matrix.running import CellResult, Sessions, standings
from harness.model import Verdict


@pytest.fixture
def sessions(parts, interpreter):
    return Sessions(sessions_of(parts), missing={"3.3": "no Python 3.3 here"})


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "step.py"
    path.write_text(repro_text("brittle", tool=SIGNED), encoding="utf-8")
    return [Cell(version, str(path), (f"brittle=={version}",)) for version in ("1.5", "1.6", "9.9")]


def test_stored_runs_are_found_without_running(parts, sessions, cells):
    def known():
        return [(row.cell.name, row.verdict) for row in standings(cells, sessions) if row.run is not None]

    assert known() == []
    for cell in cells[1:]:
        parts.prober.execute(parts.prober.prepare(sessions.probe(cell)))
    before = list(parts.store.observations())
    assert known() == [("1.6", Verdict.BAD)]  # a release that the index does not have may come yet
    assert list(parts.store.observations()) == before


def test_each_cell_has_a_word_and_a_reason(parts, sessions, cells):
    parts.prober.execute(parts.prober.prepare(sessions.probe(cells[1])))
    rows = standings([*cells[:2], evolve(cells[2], python="3.3")], sessions)
    assert [standing.word for standing in rows] == ["not run", "bad", "skip"]
    assert [standing.verdict for standing in rows] == [None, Verdict.BAD, Verdict.SKIP]
    assert rows[0] == CellResult(cells[0])
    assert (rows[0].reason, rows[2].reason) == ("", "no Python 3.3 here")
    assert "the step is broken" in rows[1].reason
