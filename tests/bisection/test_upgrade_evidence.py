"""An answer says what happened to the missing name in the releases of the culprit, and is still right without that."""

from __future__ import annotations

import gzip

import pytest
from attrs import evolve
from support import changed, make_answer, make_parts
from wheelhouse import Wheelhouse

from harness.bisection.evidence import with_evidence
from harness.bisection.showing import json_of
from harness.bisection.wording import sentence_of
from harness.environment import PipSettings, Resolution
from harness.model import Combination, Device, Observation, Outcome, RaisedException, Signature, TestOutcome, TestResult

GONE = RaisedException("builtins.AttributeError", "module 'tools' has no attribute 'saw'")


@pytest.fixture(scope="session")
def house(tmp_path_factory) -> Wheelhouse:
    """Two releases; the second lacks a function."""
    house = Wheelhouse(tmp_path_factory.mktemp("house"))
    house.add("tools", "1.0", files={"tools.py": "def saw(): ...\ndef axe(): ...\n"})
    house.add("tools", "2.0", files={"tools.py": "def axe(): ...\n"})
    house.add("tools", "3.0", files={"tools.py": "def axe(): ...\ndef saw(): ...\n"})
    return house


@pytest.fixture
def answer(parts, interpreter):
    """An answer that names the culprit, with the locks of both runs."""

    def ran(version, *tests, **more):
        asked = Combination(python=interpreter.version, requirements=(f"tools=={version}",))
        resolution = parts.resolver.resolve(asked)
        assert isinstance(resolution, Resolution)
        outcome = Outcome.EXITED if more else Outcome.COMPLETED
        return Observation(version, outcome, "pytest", "d", Device.CPU, lock=resolution.lock, tests=tests, **more)

    good = ran("1.0", TestResult("t::a", TestOutcome.PASSED))
    bad = ran("2.0", TestResult("t::a", TestOutcome.FAILED, GONE), exit_code=1)
    return make_answer(
        "tools",
        sentence="1 test fails since tools 2.0.",
        tests=("t::a",),
        signature=Signature(exception="AttributeError", message=GONE.message),
        before="1.0",
        after="2.0",
        suspects=("2.0",),
        sides=(good, bad),
        runs=(good, bad),
    )


def evidence_of(answer):
    (culprit,) = answer.culprits
    return [(one.kind, one.name, one.file) for one in culprit.evidence]


def test_two_culprits_of_one_package_have_their_own_evidence(answer, parts, interpreter):
    """Both fail with one message at the bad end, and only the first one's releases differ in that name."""
    (failure,) = answer.failures
    (culprit,) = failure.culprits
    asked = Combination(python=interpreter.version, requirements=("tools==3.0",))
    resolution = parts.resolver.resolve(asked)
    good, bad = culprit.boundary.sides
    change = evolve(culprit.boundary.change, before="1.0", after="3.0")
    sides = (good, evolve(bad, lock=resolution.lock))
    other = evolve(culprit, boundary=evolve(culprit.boundary, change=change, sides=sides))
    told = with_evidence(evolve(answer, failures=(failure, evolve(failure, culprits=(other,)))), parts.prober)
    assert [[one.name for one in culprit.evidence] for culprit in told.culprits] == [["tools.saw"], []]


def test_a_removed_name_is_reported_with_its_location(answer, parts):
    told = with_evidence(answer, parts.prober)
    assert evidence_of(told) == [("removed-name", "tools.saw", "tools.py")]
    assert "(removed tools.saw)" in sentence_of(told)
    assert json_of(told)["failures"][0]["culprits"][0]["evidence"][0]["line"] == 1


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (f"Traceback ...\nAttributeError: {GONE.message}\n", [("removed-name", "tools.saw", "tools.py")]),
        ("wrong\n", []),
    ],
)
def test_the_exception_printed_by_a_plain_command_counts(answer, parts, printed, found):
    good, bad = answer.comparison.runs
    bad = parts.store.put_from_elsewhere(evolve(bad, tests=(), log="bad.log.gz"), gzip.compress(printed.encode()))
    plain = changed(answer, tests=(), sides=(good, bad), runs=(good, bad))
    assert evidence_of(with_evidence(plain, parts.prober)) == found


def test_the_answer_is_unchanged_if_a_release_is_gone(answer, house, interpreter, tmp_path):
    parts = make_parts(tmp_path / "other", PipSettings(index_url=house.url), tmp_path / "uv", interpreter)
    pages = house.root / "files"
    hidden = pages.rename(house.root / "hidden")
    try:
        assert with_evidence(answer, parts.prober) == answer
    finally:
        hidden.rename(pages)


def test_there_is_no_evidence_if_only_one_side_ran(answer, parts):
    lone = changed(answer, sides=answer.sides[:1])
    assert with_evidence(lone, parts.prober) == lone
