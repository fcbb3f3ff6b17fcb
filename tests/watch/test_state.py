"""The state of a watch: what broke since earlier nights, by which cause, and what was fixed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from night_cells import FIRST, SECOND, STEP, THIRD, broken, choices, lock, night, past, state, states, versions
from packaging.version import Version
from support import make_answer

from harness.bisection.answer import Comparison
from harness.model import Change, Device, Observation, Outcome, RaisedException, Signature
from harness.store import Store
from harness.watch.state import (
    CellStatus,
    NightArchive,
    baseline_of,
    came_between,
    compare,
    nearest_sibling,
)

GOOD, BAD, ODD = CellStatus.GOOD, CellStatus.BEFORE, CellStatus.UNJUDGED  # what a run shows: another failure is odd
judged = st.lists(states, max_size=6).map(lambda cells: {one.name: one for one in cells if one.standing.is_judged})
shown = st.builds(
    lambda choice, seen: state(
        str(sorted(choice.items(), key=str)), seen[0], choice=choice, pattern=seen[1], observation="tonight"
    ),
    choices,
    st.sampled_from([(GOOD, ""), (BAD, "p"), (BAD, "q"), (ODD, "p"), (ODD, "q"), (ODD, "")]),
)


@given(shown, judged, judged)
def test_only_an_unbroken_cell_breaks_and_only_by_a_failure_that_ran(cell, earlier, tonight):
    baseline = baseline_of(cell, earlier, tonight)
    assert cell.name not in earlier or baseline == earlier[cell.name]  # first with itself
    now = compare(cell, baseline)
    if now.standing is CellStatus.TURNED:
        assert baseline.standing in (CellStatus.GOOD, CellStatus.TURNED, CellStatus.FLAKY)
        assert cell.pattern
    if (cell.standing, cell.pattern) == (ODD, ""):
        assert now.standing is CellStatus.UNJUDGED
    assert cell.standing is not GOOD or now.standing is GOOD


@given(choices, st.lists(states, max_size=8))
def test_the_sibling_is_the_next_older_judged_release(choice, others):
    sibling = nearest_sibling(choice, others)
    same = [
        other
        for other in others
        if other.standing.is_judged
        and other.choice["parameters.case"] == choice["parameters.case"]
        and Version(other.choice["packages.app"]) < Version(choice["packages.app"])
    ]
    assert (sibling is None) == (not same)
    if sibling is not None:
        newest = max(Version(other.choice["packages.app"]) for other in same)
        assert Version(sibling.choice["packages.app"]) == newest


def test_the_good_one_of_two_siblings_is_taken():
    bad = broken("b", choice={"packages.app": "1", "packages.helper": "2"})
    good = state("g", choice={"packages.app": "2", "packages.helper": "1"})
    assert nearest_sibling({"packages.app": "2", "packages.helper": "2"}, [bad, good]) == good


@pytest.mark.parametrize(
    ("other", "choice"),
    [
        ({"packages.app": "1.0.0"}, {"packages.app": "1.0"}),  # another spelling is not older
        ({"packages.app": "1", "python": "3.11"}, {"packages.app": "2", "python": "3.12"}),
        ({"packages.app": "1", "python": "3.11"}, {"packages.app": "1", "python": "3.12"}),
    ],
)
def test_what_differs_in_more_than_an_older_release_is_no_sibling(other, choice):
    assert nearest_sibling(choice, [state(choice=other)]) is None


@pytest.mark.parametrize(
    ("was", "pattern", "now"),
    [
        (CellStatus.GOOD, "p", CellStatus.TURNED),
        (CellStatus.TURNED, "p", CellStatus.TURNED),
        (CellStatus.BROKEN, "p", CellStatus.BROKEN),
        (CellStatus.BROKEN, "q", CellStatus.UNJUDGED),
        (CellStatus.BEFORE, "p", CellStatus.BEFORE),
        (CellStatus.FLAKY, "p", CellStatus.TURNED),
    ],
)
def test_the_meaning_of_a_failure_depends_on_the_previous_state(was, pattern, now):
    failed = state("a", BAD, pattern="p", observation="tonight")
    assert compare(failed, state("a", was, pattern=pattern)).standing is now


def test_without_an_earlier_night_nothing_turns_and_a_known_flaky_run_stays_flaky():
    for standing in (BAD, ODD):
        assert compare(state("a", standing, pattern="p"), None).standing is standing
    flaky = state("a", CellStatus.FLAKY, pattern="p")
    assert compare(state("a", BAD, pattern="p"), flaky).standing is CellStatus.FLAKY


# -- causes


def test_a_cause_has_the_cells_that_it_reached_and_closes_when_all_are_good():
    first, second = night(broken("a"), state("b")), night(broken("a"), broken("b"), start=SECOND)
    (found,) = past(first, second).causes.values()
    assert (found.cells, found.first_seen, found.last_seen) == (("nightly: a", "nightly: b"), FIRST, SECOND)
    third = night(state("a", changed="helper 1.2 -> 1.3"), broken("b"), start=THIRD)
    (found,) = past(first, second, third).causes.values()
    assert [(fix.cell, fix.changed, fix.night) for fix in found.fixes] == [("nightly: a", "helper 1.2 -> 1.3", THIRD)]
    assert found.is_open
    (found,) = past(first, second, evolve(third, cells=(state("a"), state("b")))).causes.values()
    assert found.closed == THIRD
    (found,) = past(first, evolve(third, ended=False, cells=(state("a"),))).causes.values()
    assert found.is_open  # a stopped night closes nothing


def test_a_newer_good_release_fixes_and_supersedes_a_broken_one():
    old = broken("old", choice={"packages.app": "1.1"})
    new = state("new", choice={"packages.app": "1.2"}, changed="app 1.1 -> 1.2")
    (found,) = past(night(old), night(old, new, start=SECOND)).causes.values()
    assert [(fix.cell, fix.changed) for fix in found.fixes] == [("nightly: old", "app 1.1 -> 1.2")]
    assert found.is_open  # the culprit is not known to be the app


def test_causes_span_all_matrices():
    other = evolve(night(broken("x"), start=SECOND), matrix="other")
    (found,) = past(night(broken("a")), other, night(state("a"), start=THIRD)).causes.values()
    assert (found.cells, found.is_open) == (("nightly: a", "other: x"), True)


statuses = ((CellStatus.GOOD, FIRST), (CellStatus.BROKEN, SECOND), (CellStatus.LEFT, THIRD))


@given(st.permutations([night(state("a", status), start=start) for status, start in statuses]))
def test_a_cell_keeps_its_last_verdict_whatever_the_order_of_the_files(nights):
    found = past(*nights)
    assert found.cells("nightly")["a"].standing is CellStatus.BROKEN
    assert (found.left("nightly"), found.cells("other"), found.left("other")) == (("a",), {}, ())


@given(versions, versions)
def test_a_culprit_lies_between_two_locks_if_its_release_does(older, newer):
    came = came_between([STEP], lock(helper=older), lock(helper=newer))
    assert came == (Version(older) < Version("1.2") <= Version(newer))


@pytest.mark.parametrize(
    ("change", "older", "newer", "came"),
    [
        (Change("x", None, "1.0"), {}, {"x": "1.0"}, True),
        (Change("x", None, "1.0"), {}, {"x": "1.1"}, False),
        (Change("x", "1.0", None), {"x": "1.0"}, {}, True),
        (Change("x", "2.0", "1.0"), {"x": "2.1"}, {"x": "0.9"}, True),
        (Change("x", "2.0", "1.0"), {"x": "1.0"}, {"x": "2.0"}, False),
    ],
)
def test_added_removed_or_downgraded_packages_lie_between_two_locks(change, older, newer, came):
    assert came_between([change], lock(**older), lock(**newer)) is came


def test_no_culprit_lies_between_two_locks():
    assert not came_between([], lock(x="1.0"), lock(x="2.0"))
    assert not came_between([STEP, Change("x", "1", "2")], lock(helper="1.0", x="1"), lock(helper="1.2", x="1"))


def failed(message: str, kind: str = "builtins.RuntimeError") -> Observation:
    raised = RaisedException(kind, message)
    return Observation("k", Outcome.RAISED, "step", "d", Device.CPU, exception=raised)


def test_an_answer_names_one_cause_for_one_culprit_and_one_failure():
    """Paths and numbers do not count, nor which part of the message a signature names; for tests only the culprit."""

    def cause(run: Observation, signature: Signature, after: str = "1.2", **more) -> str:
        answer = make_answer("helper", before="1.1", after=after, suspects=(after,), signature=signature, **more)
        return evolve(answer, comparison=Comparison((run,))).cause

    one = failed("no 3 at 0x7f00 in /home/a/b.py"), Signature(exception="RuntimeError")
    same = failed("no 14 at 0x8a11 in /srv/c/d.py"), Signature(message="no 14")
    assert cause(*one) == cause(*same)
    assert len({cause(*one), cause(*one, after="1.3"), cause(failed("other"), one[1])}) == 3
    assert cause(*one, tests=("a",)) == cause(failed("other"), Signature(message="other"), tests=("b",))


# -- the files


values = st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False, width=32))


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> NightArchive:
    return NightArchive(Store(tmp_path_factory.mktemp("results")))


@given(st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=3))
def test_a_night_is_read_back_as_it_was(archive, choice):
    """Values keep their types: 1, True and "1" are different cells."""
    kept = night(broken(choice=choice))
    archive.put(kept)
    (found,) = archive.all()
    assert found == kept
    assert [type(value) for value in found.cells[0].choice.values()] == [type(value) for value in choice.values()]


def test_unreadable_nights_count_as_absent_and_those_of_earlier_versions_are_read(tmp_path):
    archive = NightArchive(Store(tmp_path))
    archive.put(night(state()))
    for name, text in {"half": '{"schema": 1, "matrix": "x', "later": '{"schema": 2}', "list": "[]"}.items():
        (tmp_path / "nights" / f"{name}.json").write_text(text, encoding="utf-8")
    assert len(archive.all()) == 1
    old = '{"schema": 1, "matrix": "x", "start": "2024-01-01T00:00:00+00:00", "ended": true, "gpu_s": 3.0, "breaks": [{'
    old += '"id": "ab"}], "cells": [{"name": "a", "choice": {}, "standing": "broken", "broken_by": "ab"}]}'
    (tmp_path / "nights" / "old.json").write_text(old, encoding="utf-8")
    assert archive.past().causes["ab"].cells == ("x: a",)


def test_only_earlier_nights_are_compared_with(tmp_path):
    archive = NightArchive(Store(tmp_path))
    archive.put(night(state("a")))
    archive.put(night(state("b"), start=SECOND))
    assert list(archive.past(before=datetime.fromisoformat(SECOND)).cells("nightly")) == ["a"]


def test_a_stopped_night_can_resume_for_a_day(tmp_path):
    archive = NightArchive(Store(tmp_path))
    start = datetime(2024, 2, 1, 3, tzinfo=UTC)
    assert archive.start_of("nightly", start) == start
    archive.put(night(state(), start=start.isoformat(), ended=False))
    assert archive.start_of("nightly", start + timedelta(hours=5)) == start
    assert archive.start_of("other", start + timedelta(hours=5)) == start + timedelta(hours=5)
    assert archive.start_of("nightly", start + timedelta(hours=25)) == start + timedelta(hours=25)
    archive.put(night(state(), start=start.isoformat()))
    assert archive.start_of("nightly", start + timedelta(hours=5)) == start + timedelta(hours=5)
