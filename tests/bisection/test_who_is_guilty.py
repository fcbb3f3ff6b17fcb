"""Who broke it, where one package drags another along, only fits another, or breaks the tests more than once."""

from __future__ import annotations

import pytest
from planted_upgrades import TO_THE_RELEASE, month, write_project
from wheelhouse import Wheelhouse

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
ENDS = ("--good", "2024-01-15", "--bad", "2024-08-01")
METHODS = {
    "a_old": "import arrays; arrays.old()",
    "append": "import frames; frames.append()",
    "applymap": "import frames; frames.applymap()",
    "b_new": "import arrays; arrays.older()",
    "never": "import arrays; raise RuntimeError(f'seen with {arrays.VERSION}')",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """`arrays` loses `old` in 2.0 and `older` in 1.1; `frames` 1 can't be imported with `arrays` 2.

    `frames` loses `append` in 2.0 and `applymap` in 3.0, which fails with `arrays` 1.0.
    """
    house = Wheelhouse(tmp_path_factory.mktemp("guilty"))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1")):
        text = f"VERSION = {version!r}\n"
        text += "def old(): ...\n" if number < 2 else ""
        text += "def older(): ...\n" if number < 1 else ""
        house.add("arrays", version, files={"arrays.py": text}, uploaded=month(number))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1", "3.0", "3.1")):
        text = "import arrays\n"
        if number < 2:
            text += "if arrays.VERSION >= '2':\n    raise ImportError('arrays has another size')\n"
            text += "def append(): ...\n"
        text += "def applymap(): ...\n" if number < 4 else "assert arrays.VERSION >= '1.1', 'arrays is too old'\n"
        needs = ("arrays>=1.1",) if number >= 4 else ("arrays",)
        house.add("frames", version, files={"frames.py": text}, requires=needs, uploaded=month(number))
    return house


@pytest.fixture
def harness_there(harness, house):
    return harness.with_environ(**house.environ)


def suite(*names):
    tests = "".join(f"    def test_{name}(self):\n        {METHODS[name]}\n" for name in names)
    return f"import unittest\n\nclass T(unittest.TestCase):\n    def test_own(self):\n        pass\n{tests}"


def culprits(answer):
    return {
        (culprit["package"], culprit["last_good"], culprit["first_bad"])
        for group in answer["failures"]
        for culprit in group["culprits"]
    }


def test_a_package_that_only_has_to_come_along_is_no_culprit(harness_there):
    write_project(harness_there.folder, suite("append"), requires=["frames", "arrays"])
    answer = harness_there("bisect", *ENDS, *RUN[:2], "--json").json  # down to the lines
    assert culprits(answer) == {("frames", "1.1", "2.0")}
    (culprit,) = answer["failures"][0]["culprits"]
    assert culprit["companions"] == [{"package": "arrays", "constraint": "arrays<2"}]
    assert set(answer["constraints"]) == {"frames<2", "arrays<2"}
    assert answer["constraints_verified"]
    assert "frames<2 needs arrays<2 alongside" in answer["sentence"]


def test_a_package_that_drags_the_culprit_along_is_not_named(harness_there):
    write_project(harness_there.folder, suite("a_old", "append", "applymap"), requires=["frames", "arrays"])
    answer = harness_there("bisect", *ENDS, *RUN).json
    assert culprits(answer) == {("arrays", "1.1", "2.0"), ("frames", "1.1", "2.0"), ("frames", "2.1", "3.0")}
    assert set(answer["constraints"]) == {"frames<2", "arrays<2"}
    assert answer["constraints_verified"]


@pytest.mark.parametrize("bare", [False, True])
def test_of_two_breaks_of_one_package_the_tightest_bound_counts(harness_there, bare):
    write_project(harness_there.folder, suite("a_old", "b_new"), requires=["arrays"])
    ends = ("--bad", "2024-08-01") if bare else ENDS
    answer = harness_there("bisect", *ends, *RUN).json
    assert culprits(answer) == {("arrays", "1.0", "1.1"), ("arrays", "1.1", "2.0")}
    assert (answer["constraints"], answer["constraints_verified"]) == (["arrays<1.1"], True)
    assert answer["failing_at_both"] == []


def test_a_test_that_never_passes_is_told_apart(harness_there):
    write_project(harness_there.folder, suite("a_old", "b_new", "never"), requires=["arrays"])
    answer = harness_there("bisect", "--bad", "2024-08-01", *RUN).json
    assert culprits(answer) == {("arrays", "1.0", "1.1"), ("arrays", "1.1", "2.0")}
    assert answer["failing_at_both"] == ["test_mine.T.test_never"]
