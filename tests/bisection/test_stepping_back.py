"""Without a good end, each test steps back until it passes; a day without a solution is not the end of the way."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from planted_upgrades import TO_THE_RELEASE, source, suite_of, write_project
from support import PATH
from wheelhouse import Wheelhouse

from harness.bisection.steps_back import StepsBack
from harness.environment import PipSettings, Uv
from harness.errors import UserMistake
from harness.model import Combination, Device, Lock
from harness.question.ends import day_end
from harness.question.package_set import Snapshot, Way
from harness.question.snapshots import NoSolution

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
BAD = datetime(2024, 8, 1, tzinfo=UTC)


def world_of(end, moment):
    lock = Lock("3.11.0", Device.CPU, ())
    return Snapshot(end=end, repro=None, combination=Combination("3.11.0", (), as_of=moment), lock=lock, way=Way.DAY)


class FewDays:
    """Snapshots that can be resolved from one day on."""

    def __init__(self, since, python=""):
        self.since, self.python = since, python
        self.asked = []

    def history(self):
        """The project has no repository."""
        return

    def of(self, end):
        """Make the snapshot of a day."""
        self.asked.append(end.text)
        if end.moment < self.since:
            way_on = (end.text, self.python) if self.python else None
            raise NoSolution(f"nothing can be installed as of {end.text}", way_on=way_on)
        return world_of(end, end.moment)


def steps_of(snapshots):
    bad = world_of(day_end(BAD), BAD)
    steps = StepsBack(snapshots, bad)
    return steps, {snapshot.end.text: label for label, snapshot in steps}


def test_days_between_are_tried_where_a_day_has_no_solution():
    steps, labels = steps_of(FewDays(datetime(2024, 5, 1, tzinfo=UTC)))
    assert labels["2024-07-25"] == "as of 2024-07-25, 1 week before"
    assert labels["2024-05-09"] == "as of 2024-05-09, 12 weeks before"  # in the gap, where days are halved
    assert list(labels)[:4] == ["2024-07-25", "2024-07-18", "2024-07-04", "2024-06-06"]
    assert list(labels)[4:] == ["2024-05-09", "2024-05-02", "2024-05-01"]
    assert steps.reached == "2024-05-01"
    assert "nothing can be installed as of" in steps.limit


def test_days_between_are_tried_where_a_day_fails_with_another_error():
    bad = world_of(day_end(BAD), BAD)
    steps = StepsBack(FewDays(datetime(2023, 1, 1, tzinfo=UTC)), bad)
    days = []
    for _, snapshot in steps:
        days.append(snapshot.end.text)
        steps.differs = not "2024-05-20" < snapshot.end.text < "2024-07-20"
        if len(days) == 15:
            break
    # The bad end shows the bug, and a week before does not; eight weeks do, 16 do not; then on beyond these.
    assert days == [
        *("2024-07-25", "2024-07-29", "2024-07-31"),
        *("2024-07-18", "2024-07-04", "2024-06-06", "2024-04-11"),
        *("2024-05-09", "2024-05-23", "2024-05-16", "2024-05-20", "2024-05-22", "2024-05-21"),
        *("2023-12-21", "2023-05-11"),
    ]


def test_the_python_that_leads_further_is_kept():
    steps, _ = steps_of(FewDays(BAD, python="3.9"))
    assert steps.way_on == ("2024-07-31", "3.9")
    assert (steps.reached, steps_of(FewDays(BAD))[0].way_on) == ("", None)


def test_another_python_of_this_machine_goes_further_back(harness, tmp_path):
    """The older release has wheels for Python 3.12 only, and the newer one fails with every Python."""
    other = next((one for one in ("3.12", "3.13") if not sys.version.startswith(one)), "")
    try:
        Uv(PipSettings()).find_python(other)
    except UserMistake:
        pytest.skip(f"no Python {other} on this machine")
    house = Wheelhouse(tmp_path / "young")
    tag = f"cp{other.replace('.', '')}-none-any"
    house.add("early", "1.0", files={"early.py": source("1.0")}, tag=tag, uploaded="2018-01-01T12:00:00Z")
    broken = source("2.0", broken="early is broken")
    house.add("early", "2.0", files={"early.py": broken}, uploaded="2024-02-10T12:00:00Z")
    house.add("aged", "1.0", files={"aged.py": source("1.0")}, tag=tag, uploaded="2022-01-01T12:00:00Z")
    house.add("aged", "2.0", files={"aged.py": source("2.0", broken="aged is broken")}, uploaded="2024-02-20T12:00:00Z")
    here = harness.with_environ(PATH=PATH, **house.environ)
    write_project(here.folder, suite_of("aged", "early"), requires=["aged", "early"])
    answer = here("bisect", "--bad", "2024-03-01", *RUN).json
    found = [culprit for failure in answer["failures"] for culprit in failure["culprits"]]
    assert {(one["package"], one["last_good"], one["first_bad"]) for one in found} == {
        ("aged", "1.0", "2.0"),
        ("early", "1.0", "2.0"),  # which fails on the first day that only the other Python goes back to
    }
    assert any(f"this is the answer for Python {other}" in note for note in answer["notes"])
