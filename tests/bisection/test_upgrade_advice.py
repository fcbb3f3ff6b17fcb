"""What a user is told to try where nothing of interest passes at the good end."""

from __future__ import annotations

import pytest
from attrs import evolve

from harness.bisection.advice import advice_on, advice_on_limits, cut_short, install_missing
from harness.bisection.failures import Groups
from harness.bisection.flow import passes_whole
from harness.model import Change, Device, Observation, Outcome, RaisedException, Repro, TestOutcome, TestResult
from harness.model.boundary import Boundary


def ran(*results):
    tests = tuple(
        TestResult(name, TestOutcome.ERROR, RaisedException(f"builtins.{kind}", message))
        for name, kind, message in results
    )
    return Observation("k", Outcome.EXITED, "pytest", "d", Device.CPU, tests=tests, exit_code=1)


MISSING = ("test_it.py", "ModuleNotFoundError", "No module named 'yaml'")


def test_what_is_missing_at_either_end_is_added():
    told = install_missing(Repro("r", "d"), (ran(("t", "KeyError", "x")), ran(MISSING)))
    assert "--with yaml" in told


def test_the_most_common_failure_is_reported():
    told = advice_on(ran(("a", "KeyError", "one"), ("b", "ValueError", "two"), ("c", "ValueError", "two")))
    assert "ValueError: two" in told


def test_a_suite_that_is_stopped_at_its_limit_is_told_and_confirms_nothing():
    whole = evolve(ran(MISSING, ("t", "KeyError", "x")), outcome=Outcome.EXITED)
    stopped = evolve(whole, outcome=Outcome.TIMED_OUT, detail="timed out after 600 s in test_it.py::test_long")
    assert cut_short("the good end", [whole]) == ()
    (told,) = cut_short("the good end", [stopped])
    assert told.startswith("the good end timed out after 600 s in test_it.py::test_long: later tests did not run")
    assert (passes_whole(Groups(()), whole), passes_whole(Groups(()), stopped)) == (True, False)


def test_releases_that_were_not_run_at_the_boundary_are_known():
    left_out = {"2.0.0": "yanked: wrong files", "1.9": "yanked", "2.0rc1": "yanked", "2.0.1": "no files on the index"}
    found = Boundary(Change("tools", "1.9.1", "2.1"), left_out=left_out, suspects=("2.1",))
    assert found.left_between == {"2.0.0": "yanked: wrong files", "2.0.1": "no files on the index"}
    assert found.untried == {}
    assert found.constraint == "tools<=1.9.1"
    assert Boundary(Change("tools", "1.9.1", None), left_out=left_out).untried == {}


def test_a_release_without_a_wheel_at_the_boundary_may_be_bad():
    left_out = {"2.0": "no wheel, source only (--build allows building it)"}
    found = Boundary(Change("tools", "1.9", "2.1"), left_out=left_out, suspects=("2.1",))
    assert found.constraint == "tools<=1.9"


def test_nothing_is_advised_where_nothing_failed():
    assert advice_on(ran()) == ""


@pytest.mark.parametrize(
    ("limits", "way"),
    [(["numpy==1.26"], "--unpin"), (["numpy<2"], "--with numpy"), (["a[x]~=1.0", "b==2"], "--with a")],
)
def test_limits_are_lifted_by_the_option_for_their_kind(limits, way):
    assert way in advice_on_limits(limits)
    assert advice_on_limits([]) == ""
