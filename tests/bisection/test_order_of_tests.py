"""A test that fails only after other tests is no flaky test: the whole command is run, and its release is found."""

from __future__ import annotations

import pytest
from planted_upgrades import freeze, month, write_project
from wheelhouse import Wheelhouse

RUN = ("--run", "python -m unittest -q test_mine", "--depth", "release", "--json")
TESTS = """
import unittest, register

class T(unittest.TestCase):
    def test_a_registers(self):
        register.add("first")

    def test_b_is_{alone}(self):
        self.assertEqual(register.NAMES, {expected})
"""
KEEPS = "NAMES = []\ndef add(name):\n    NAMES.append(name)\n"
CLEARS = "NAMES = []\ndef add(name):\n    pass\n"


@pytest.fixture
def register(harness, tmp_path_factory):
    """`register` has six releases; what a test leaves in it stays there from 1.3 on. `other` is innocent."""
    house = Wheelhouse(tmp_path_factory.mktemp("register"))
    for number in range(6):
        body = f"VERSION = {number}\n{KEEPS if number >= 3 else CLEARS}"
        house.add("register", f"1.{number}", files={"register.py": body}, uploaded=month(number))
        house.add("other", f"1.{number}", files={"other.py": f"VERSION = {number}\n"}, uploaded=month(number))
    return harness.with_environ(**house.environ)


def ask(register, tests, *options, old="1.0", new="1.5"):
    write_project(register.folder, tests)
    good = freeze(register.folder / "old.txt", release=old, names=["register", "other"])
    bad = freeze(register.folder / "new.txt", release=new, names=["register", "other"])
    return register("bisect", "--good", good, "--bad", bad, *RUN, *options).json


def test_a_test_that_fails_only_after_others_is_blamed_on_its_release(register):
    answer = ask(register, TESTS.format(alone="good", expected="[]"))
    assert answer["status"] == "found"
    assert answer["flaky"] == []
    (failure,) = answer["failures"]
    assert [(one["package"], one["first_bad"]) for one in failure["culprits"]] == [("register", "1.3")]
    assert failure["tests"] == ["test_mine.T.test_b_is_good"]
    assert "test_mine.T.test_b_is_good depends on the tests that run before" in " ".join(answer["notes"])


def test_a_test_that_passes_only_after_others_is_blamed_on_its_release(register):
    """It fails alone at both ends."""
    answer = ask(register, TESTS.format(alone="bad", expected="['first']"), "--confirm", "1", old="1.5", new="1.0")
    assert answer["flaky"] == []
    assert [one["package"] for failure in answer["failures"] for one in failure["culprits"]] == ["register"]
