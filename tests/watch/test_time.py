"""What a night does first when time is short, with a clock controlled by the test."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from attrs import define, field
from night_cells import FIRST, SECOND, THIRD, night, past, state
from simulation import BROKEN
from support import make_parts, sessions_of

from harness.environment import PipSettings
from harness.events import SILENT, Judged, LevelBegan, Note, SearchBegan, Started
from harness.matrix import Cell
from harness.matrix.running import Sessions
from harness.probing.lanes import Lanes
from harness.report.archive import Archive
from harness.watch.state import CellStatus, Past
from harness.watch.watch import Budget, Watch, in_order


@define
class Clock:
    """Seconds that pass with each event: for each cell, and for each attempt to find a cause."""

    a_cell: float = 0.0
    a_try: float = 0.0
    now: float = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@define
class Diary:
    """Records events in order, and lets time pass."""

    clock: Clock
    lines: list[str] = field(factory=list)
    in_cells: bool = False

    def report(self, event):
        """Record it."""
        match event:
            case Note(sentence):
                self.lines.append(sentence.partition(":")[0])
                self.in_cells = False
            case SearchBegan() | LevelBegan():
                self.in_cells = isinstance(event, SearchBegan) and event.progress.unit == "cell"
            case Judged() if self.in_cells:
                self.lines.append(f"{event.label} {event.judgement.verdict.value}")
                self.clock.now += self.clock.a_cell
            case Started() if not self.in_cells:
                self.lines.append("tried")
                self.clock.now += self.clock.a_try


@pytest.fixture
def small(nights, tmp_path, uv_cache, interpreter):
    """Run a night of cells by their numbers, under a budget of one minute."""
    parts = make_parts(tmp_path, PipSettings(index_url=nights.house.url), uv_cache, interpreter, cache=nights.cache)
    history, pool = [], Lanes(1)

    def run(start: str, clock: Clock, *numbers: int, minutes: float | None = 1.0):
        (tmp_path / "repros").mkdir(exist_ok=True)
        path = str(Path.cwd() / "repros" / "step.py")
        cells = tuple(
            Cell(f"cell {n}", path, ("app==1.0",), params={"case": n}, choice={"parameters.case": n}) for n in numbers
        )
        diary = Diary(clock)
        budget = Budget(diary, clock, minutes)
        sessions = Sessions(sessions_of(parts, budget), as_of=datetime.fromisoformat(start))
        earlier = Past.of(history, Archive(parts.store))
        ended = Watch("small", cells, start, earlier, sessions, pool, budget).run()
        history.append(ended)
        run.diary = diary.lines
        return ended

    run.reports = Archive(parts.store).all
    yield run
    pool.close()


def standings(night) -> list[CellStatus]:
    return [cell.standing for cell in night.cells]


@pytest.mark.parametrize(("seconds", "is_searched_first"), [(29, False), (31, True)])
def test_half_of_the_time_is_reserved_for_causes(small, nights, seconds, is_searched_first):
    """After half of the time, the cause of the first cell is searched before the second cell runs."""
    small(FIRST, Clock(), 1, 2)
    nights.helper("1.1", "2024-02-01", BROKEN)
    ended = small(SECOND, Clock(a_cell=seconds), 1, 2)
    assert ("tried" in small.diary[: small.diary.index("cell 2 bad")]) is is_searched_first
    assert standings(ended)[0] is CellStatus.BROKEN
    assert is_searched_first or standings(ended)[1] is CellStatus.BROKEN


def test_a_search_that_runs_out_of_time_resumes_the_next_night(small, nights):
    """The cell stays broken, comes first the next night, and finished runs are not repeated."""
    small(FIRST, Clock(), 1, 2)
    nights.helper("1.1", "2024-02-01", BROKEN)
    nights.other("1.1", "2024-02-01")
    stopped = small(SECOND, Clock(a_try=40), 2, 1)
    assert standings(stopped) == [CellStatus.TURNED, CellStatus.TURNED]
    assert stopped.left == ("cell 2", "cell 1")
    assert list(small.reports()) == []
    assert "tried" in small.diary
    resumed = small(THIRD, Clock(), 1, 2)
    assert small.diary[0] == "cell 2 bad"
    assert standings(resumed) == [CellStatus.BROKEN, CellStatus.BROKEN]
    (kept,) = small.reports()
    assert kept.answer.sentence.startswith("step fails since helper 1.1: ")


def test_remaining_cells_come_first_the_next_night(small):
    left = small(FIRST, Clock(a_cell=31), 1, 2, 3)
    assert standings(left) == [CellStatus.GOOD, CellStatus.GOOD, CellStatus.LEFT]
    assert left.left == ("cell 3",)
    small(SECOND, Clock(), 1, 2, 3)
    assert small.diary == ["cell 3 good", "cell 1 good", "cell 2 good"]


def test_work_left_comes_first_then_known_cells_then_new_releases_in_order():
    def names(versions: dict[str, str], past: Past) -> list[str]:
        cells = [Cell(name, "step", choice={"packages.app": version}) for name, version in versions.items()]
        return [cell.name for cell in in_order(cells, past, "nightly")]

    first = night(*map(state, "abcd"))
    second = night(state("d", CellStatus.TURNED), state("b", CellStatus.LEFT), start=SECOND)
    assert names(dict.fromkeys("abcd", "1.0"), past(first, second)) == ["d", "b", "a", "c"]
    known = past(night(state("known")))
    assert names({"new": "1.10", "newer": "1.9", "known": "2.0"}, known) == ["known", "newer", "new"]


def test_no_limit_is_never_spent_and_a_limit_of_zero_always_is():
    now = [100.0]
    budget = Budget(SILENT, lambda: now[0], minutes=1)
    now[0] += 30
    assert budget.share == 0.5
    assert Budget(SILENT, lambda: 0.0).share == 0.0
    assert Budget(SILENT, lambda: 0.0, minutes=0).share >= 1.0
