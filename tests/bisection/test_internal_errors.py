"""An internal error below a level that is known does not take the answer away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import frozen
from planted_upgrades import freeze, suite_of, write_project
from support import SIGNED

import harness
from harness.bisection.sections import sections_of
from harness.errors import NoNetwork
from harness.events import Event, LevelBegan, SearchBegan
from harness.model.culprit import Level
from harness.settings import Settings


@frozen
class Faulty:
    """A reporter that fails once a level begins."""

    level: Level

    def report(self, event: Event) -> None:
        """Fail like a fault of the harness."""
        if isinstance(event, LevelBegan) and event.level is self.level:
            raise ValueError("unknown changes: HARNESS_TOKEN is hunter2-hunter2")


@pytest.fixture
def asked(harness, write_repro, monkeypatch):
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARNESS_TOKEN", "hunter2-hunter2")
    monkeypatch.chdir(harness.folder)
    write_repro("brittle", tool=SIGNED)


def test_what_is_known_stands_and_the_answer_names_the_file_of_the_fault(asked):
    ends = {"good": "1.5", "bad": "1.6", "depth": "region", "confirm": 1, "settings": Settings(lanes=1)}
    answer = harness.bisect("brittle", reporter=Faulty(Level.REGION), **ends)
    assert (answer.last_good, answer.first_bad) == ("1.5", "1.6")
    assert answer.exit_code == 4
    assert answer.findings[-1].level is Level.PACKAGE
    assert answer.findings[-1].is_proved
    (told,) = (row.whole for section in sections_of(answer) for row in section.rows if row.label == "internal error")
    file = Path(re.search(r"details are in (\S+)", told)[1])
    assert "unknown changes" in told
    assert "hunter2" not in told + file.read_text(encoding="utf-8")
    assert "in report\n" in file.read_text(encoding="utf-8")
    file.unlink()
    again = harness.bisect("brittle", **ends)  # it is not answered from what was known then
    assert again.exit_code == 0
    assert again.findings[-1].level is Level.REGION


@frozen
class FaultySearch:
    """A reporter that fails once a package's releases are searched."""

    package: str
    error: Exception

    def report(self, event: Event) -> None:
        """Fail like a fault of the harness."""
        if isinstance(event, SearchBegan) and self.package in event.headline:
            raise self.error


ENDS = {"good": "1.0", "bad": "2.1"}


@pytest.fixture
def two_culprits(planted, monkeypatch):
    for name, value in planted.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(planted.folder)
    write_project(planted.folder, suite_of("part07", "part09"))
    names = ["part07", "part09"]
    ends = {end: str(freeze(Path(f"{end}.txt"), release=release, names=names)) for end, release in ENDS.items()}
    return {
        "run": "python -m unittest -q test_mine",
        "depth": "release",
        "confirm": 1,
        "settings": Settings(lanes=1),
        **ends,
    }


def test_the_culprit_of_one_failure_stands_when_the_search_of_another_ends(two_culprits):
    answer = harness.bisect(reporter=FaultySearch("part07", ValueError("unknown changes")), **two_culprits)
    assert [culprit.package for culprit in answer.culprits] == ["part09"]
    assert answer.exit_code == 4
    (told,) = (row.whole for section in sections_of(answer) for row in section.rows if row.label == "internal error")
    Path(re.search(r"details are in (\S+)", told)[1]).unlink()
    again = harness.bisect(**two_culprits)
    assert (again.exit_code, len(again.culprits)) == (0, 2)


@pytest.mark.parametrize("error", [ValueError("unknown changes"), NoNetwork("no network")])
def test_without_a_culprit_or_without_network_there_is_no_answer(two_culprits, error):
    with pytest.raises(type(error)):
        harness.bisect(reporter=FaultySearch("releases of part", error), **two_culprits)
