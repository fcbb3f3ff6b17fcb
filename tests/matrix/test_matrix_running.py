"""Each cell of a matrix is one probe; cells with the same lock run once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import SIGNED, Heard, repro_text, sessions_of

from harness.environment.dates import era_of
from harness.errors import BadRepro, UserMistake
from harness.matrix import Cell
from harness.matrix.running import Sessions, run_cells
from harness.model import Verdict
from harness.probing.lanes import Lanes


@pytest.fixture
def run(parts, interpreter, tmp_path):
    """Run cells of a repro, with or without a signature, that uses `brittle` or another project."""
    notes = Heard()

    def start(*requirements: str, signed: bool = True, project: str = "brittle", lanes: int = 1, **more):
        path = tmp_path / f"{project}_step.py"
        path.write_text(repro_text(project, tool=SIGNED if signed else ""), encoding="utf-8")
        cells = tuple(Cell(str(i), str(path), (text,), **more) for i, text in enumerate(requirements))
        pool = Lanes(lanes)
        try:
            return run_cells(cells, Sessions(sessions_of(parts, notes)), pool)
        finally:
            pool.close()

    start.notes = notes
    return start


def words(runs) -> str:
    return "".join(run.judgement.verdict.value[0] for run in runs)


def test_each_cell_has_its_verdict_with_its_reason(run):
    runs = run("brittle==1.5", "brittle==1.6", "brittle==9.9")
    assert words(runs) == "gbs"
    assert "the step is broken" in runs[1].judgement.reason
    assert "9.9" in runs[2].judgement.reason
    assert [cached for _, _, cached in run.notes.judged] == [False, False, False]


@pytest.mark.parametrize("lanes", [1, 2])
def test_cells_with_the_same_lock_run_once(run, lanes):
    runs = run("brittle==1.5", "brittle>=1.5,<1.6", "brittle==1.6", lanes=lanes)
    assert words(runs) == "ggb"
    assert runs[0].observation == runs[1].observation
    assert sorted(run.cached for run in runs) == [False, False, True]
    assert len(run.notes.started) == 2


def test_stored_cells_are_not_run_again(run):
    run("brittle==1.5", "brittle==1.6")
    assert [each.cached for each in run("brittle==1.5", "brittle==1.6")] == [True, True]


def test_without_a_signature_any_failure_is_bad(run):
    good, bad = run("brittle==1.5", "brittle==1.6", signed=False)
    assert (good.judgement.verdict, bad.judgement.verdict) == (Verdict.GOOD, Verdict.BAD)
    assert good.signature is None
    assert bad.signature is not None
    assert bad.signature.captured


def test_a_different_failure_is_a_skip(run):
    (odd,) = run("odderror==1.3", project="odderror")
    assert odd.judgement.verdict is Verdict.SKIP
    assert odd.judgement.reason.startswith("failed differently")


def test_era_is_the_day_of_the_newest_pinned_release(parts, run):
    assert era_of(["brittle==1.5", "helper==1.0"], parts.index) == datetime(2023, 6, 1, 13, tzinfo=UTC)
    assert era_of(["brittle==9.9"], parts.index) is None
    with pytest.raises(UserMistake, match="era needs a release"):
        era_of(["brittle>=1.5", "brittle==1.*"], parts.index)
    (cell,) = run("brittle==1.5", as_of="era")
    assert cell.probe.combination.as_of == datetime(2023, 6, 1, 13, tzinfo=UTC)


def test_a_cell_without_a_day_takes_the_default_day(parts, interpreter, tmp_path):
    path = tmp_path / "step.py"
    path.write_text(repro_text("brittle"), encoding="utf-8")
    day = datetime(2024, 2, 1, tzinfo=UTC)
    sessions = Sessions(sessions_of(parts), as_of=day)
    assert sessions.probe(Cell("x", str(path))).combination.as_of == day
    other = sessions.probe(Cell("x", str(path), as_of="2023-05-01")).combination.as_of
    assert other == datetime(2023, 5, 2, tzinfo=UTC)  # the end of the day


def test_a_pinned_pre_release_is_allowed(parts, interpreter, tmp_path):
    path = tmp_path / "step.py"
    path.write_text(repro_text("mixed"), encoding="utf-8")
    sessions = Sessions(sessions_of(parts))
    pinned = sessions.probe(Cell("x", str(path), ("mixed==1.5rc1", "helper==1.0")))
    assert pinned.combination.prereleases == ("mixed",)


def test_a_mistake_in_one_cell_is_reported_before_any_run(parts, interpreter, tmp_path):
    path = tmp_path / "step.py"
    path.write_text(repro_text("brittle"), encoding="utf-8")
    notes, pool = Heard(), Lanes(1)
    cells = (Cell("a", str(path)), Cell("b", str(Path("no_such_repro"))))
    with pytest.raises(BadRepro, match="no_such_repro"):
        run_cells(cells, Sessions(sessions_of(parts, notes)), pool)
    pool.close()
    assert notes.judged == []
    assert list(parts.store.observations()) == []
