"""A test that fails only in some runs: no lucky run ends the search or names a package."""

from __future__ import annotations

import pytest
from planted_upgrades import freeze, month, source, write_project
from wheelhouse import Wheelhouse

from harness.search import MOST_PASSES, passes_needed

RUN = ("--run", "python -m unittest -q test_mine", "--json")
# The first run of the bad end fails, or passes by luck.
SEEDS = {"d": ("--depth", "release"), "h": ()}
# FAILS says whether a run fails; `number` counts the runs of broken releases, in a file.
TESTS = """
import os, pathlib, random, unittest, dicey, other

class T(unittest.TestCase):
    def test_own(self):
        pass

    def test_dicey(self):
        counter = pathlib.Path(os.environ["COUNTER"])
        number = len(counter.read_text()) if counter.exists() else 0
        if dicey.BROKEN:
            counter.write_text("x" * (number + 1))
        self.assertFalse(dicey.BROKEN and FAILS, "unlucky")
"""


@pytest.fixture
def dicey(harness, tmp_path_factory):
    """`dicey` has ten releases and is broken from 1.4 on; `other` is innocent."""
    house = Wheelhouse(tmp_path_factory.mktemp("dicey"))
    for number in range(10):
        body = f"VERSION = {number}\nBROKEN = {number >= 4}\n"
        house.add("dicey", f"1.{number}", files={"dicey.py": body}, uploaded=month(number))
        house.add("other", f"1.{number}", files={"other.py": source(f"1.{number}")}, uploaded=month(number))
    return harness.with_environ(**house.environ, COUNTER=str(harness.folder.parent / "counter"))


def ask(dicey, fails, *options):
    write_project(dicey.folder, TESTS.replace("FAILS", fails))
    ends = ("--good", freeze(dicey.folder / "old.txt", release="1.0", names=["dicey", "other"]))
    ends += ("--bad", freeze(dicey.folder / "new.txt", release="1.9", names=["dicey", "other"]))
    return dicey("bisect", *ends, *RUN, *options, "--pass-env", "COUNTER").json


def culprits(answer):
    return [(one["package"], one["first_bad"]) for failure in answer["failures"] for one in failure["culprits"]]


@pytest.mark.parametrize(("seed", "options"), SEEDS.items(), ids=SEEDS)
def test_a_test_that_fails_in_some_runs_is_blamed_on_its_release(dicey, seed, options):
    answer = ask(dicey, f"random.Random(f'{seed} {{number}}').random() < 0.5", *options)
    assert answer["status"] == "found"
    assert culprits(answer) == [("dicey", "1.4")]


def test_a_bad_end_that_always_passes_is_run_seven_times(dicey):
    answer = ask(dicey, "False")
    assert answer["status"] == "no-failure"
    assert answer["probes"] == 7


def test_a_failure_that_is_too_rare_names_nothing(dicey):
    answer = ask(dicey, "number == 0")
    assert answer["status"] == "not-a-regression"
    assert answer["flaky"] == ["test_mine.T.test_dicey"]
    assert culprits(answer) == []


def test_more_passes_are_needed_the_rarer_the_failure_is():
    needed = [passes_needed(failures, 8) for failures in (8, 6, 4, 2)]
    assert needed == sorted(needed)
    assert needed[0] <= 3
    assert needed[-1] > MOST_PASSES
