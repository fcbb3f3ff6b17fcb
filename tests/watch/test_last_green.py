"""The last packages with passing tests are kept in a file that pip and the harness can read."""

from __future__ import annotations

import pytest
from attrs import evolve
from packaging.requirements import Requirement

from harness.errors import UserMistake
from harness.model import Device, Lock, Observation, Outcome, Pin, TestOutcome, TestResult
from harness.watch.watch import FILE, failing_tests, keep_last_green, read_last_green

LOCK = Lock("3.11.7", "linux", [Pin("numpy", "1.26.4"), Pin("flask-sqlalchemy", "3.0.5"), Pin("odd.name", "1!2.0rc1")])
RUN = Observation(
    "k",
    Outcome.EXITED,
    "pytest",
    "d",
    Device.CPU,
    tests=(
        TestResult("a.py::old", TestOutcome.FAILED),
        TestResult("a.py::new[x y]", TestOutcome.ERROR),
        TestResult("a.py::fine", TestOutcome.PASSED),
        TestResult("a.py::known", TestOutcome.XFAILED),
    ),
)


def test_a_written_file_is_read_back(tmp_path):
    keep_last_green(tmp_path / "state", LOCK, ["a.py::old"], "2025-07-31")
    kept = read_last_green(tmp_path / "state")
    assert kept.versions == {"numpy": "1.26.4", "flask-sqlalchemy": "3.0.5", "odd.name": "1!2.0rc1"}
    assert (kept.date, kept.failing) == ("2025-07-31", ("a.py::old",))
    assert kept.is_same(LOCK)
    assert not kept.is_same(evolve(LOCK, pins=[Pin("numpy", "1.26.4")]))


def test_each_line_is_a_comment_or_an_exact_requirement(tmp_path):
    keep_last_green(tmp_path, LOCK, ["a.py::odd\n# text"], "2025-07-31")
    lines = [line for line in (tmp_path / FILE).read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 3
    assert all("==" in str(Requirement(line)) for line in lines)


def test_only_new_failures_are_news(tmp_path):
    assert failing_tests(RUN) == ("a.py::new[x y]", "a.py::old")
    keep_last_green(tmp_path, LOCK, ["a.py::old", "a.py::gone"], "2025-07-31")
    assert read_last_green(tmp_path).news(RUN) == ("a.py::new[x y]",)


def test_there_is_no_file_before_the_first_green_night(tmp_path):
    assert read_last_green(tmp_path / "nowhere") is None


@pytest.mark.parametrize("text", ["numpy==1.0\n", "", "# harness watch: {}\n", "# harness watch: {oh}\nx==1\n"])
def test_a_foreign_file_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UserMistake, match=FILE):
        read_last_green(tmp_path)
