"""An answer says what happened to the missing name in the releases of the culprit, and is still right without that."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse

from harness.bisect.answer import Status
from harness.bisect.boundary import Boundary
from harness.bisect.evidence import with_evidence
from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer
from harness.environment import PipSettings, Resolution
from harness.model import Combination, Device, Observation, Outcome, RaisedException, Signature, TestOutcome, TestResult
from harness.request.ends import End, EndKind

GONE = RaisedException("builtins.AttributeError", "module 'tools' has no attribute 'saw'")


@pytest.fixture(scope="session")
def house(tmp_path_factory) -> Wheelhouse:
    """Two releases; the second lacks a function."""
    house = Wheelhouse(tmp_path_factory.mktemp("house"))
    house.add("tools", "1.0", files={"tools.py": "def saw(): ...\ndef axe(): ...\n"})
    house.add("tools", "2.0", files={"tools.py": "def axe(): ...\n"})
    return house


@pytest.fixture
def answer(parts, interpreter) -> UpgradeAnswer:
    """An answer that names the culprit, with the locks of both runs."""

    def ran(version, *tests, **more):
        asked = Combination(python=interpreter.version, requirements=(f"tools=={version}",))
        resolution = parts.resolver.resolve(asked)
        assert isinstance(resolution, Resolution)
        outcome = Outcome.EXITED if more else Outcome.COMPLETED
        return Observation(version, outcome, "pytest", "d", Device.CPU, lock=resolution.lock, tests=tests, **more)

    good = ran("1.0", TestResult("t::a", TestOutcome.PASSED))
    bad = ran("2.0", TestResult("t::a", TestOutcome.FAILED, GONE), exit_code=1)
    boundary = Boundary("tools", "1.0", "2.0", suspects=("2.0",), sides=(good, bad))
    signature = Signature(exception="AttributeError", message=GONE.message)
    group = GroupAnswer(("t::a",), signature, Status.FOUND, (PackageCulprit(boundary),))
    day = End(EndKind.DAY, "2024-02-01")
    return UpgradeAnswer("pytest", Status.FOUND, "", day, day, (group,), sides=(good, bad))


def evidence_of(answer):
    (culprit,) = answer.culprits
    return [(one.kind, one.name, one.file) for one in culprit.evidence]


def test_a_removed_name_is_reported_with_its_location(answer, parts):
    told = with_evidence(answer, parts.builder, lambda _: "")
    assert evidence_of(told) == [("removed-name", "tools.saw", "tools.py")]
    assert "tools.saw was removed" in told.sentence
    assert told.as_json()["groups"][0]["culprits"][0]["evidence"][0]["line"] == 1


def test_the_exception_printed_by_a_plain_command_counts(answer, parts):
    (group,) = answer.groups
    plain = evolve(answer, groups=(evolve(group, tests=()),))
    printed = f"Traceback ...\nAttributeError: {GONE.message}\n"
    assert evidence_of(with_evidence(plain, parts.builder, lambda _: printed)) == [
        ("removed-name", "tools.saw", "tools.py")
    ]
    assert evidence_of(with_evidence(plain, parts.builder, lambda _: "it went wrong\n")) == []


def test_the_answer_is_unchanged_if_a_release_is_gone(answer, house, interpreter, tmp_path):
    parts = make_parts(tmp_path / "other", PipSettings(index_url=house.url), tmp_path / "uv", interpreter)
    pages = house.root / "files"
    hidden = pages.rename(house.root / "hidden")
    try:
        assert with_evidence(answer, parts.builder, lambda _: "") == answer
    finally:
        hidden.rename(pages)


def test_there_is_no_evidence_if_only_one_side_ran(answer, parts):
    (group,) = answer.groups
    (culprit,) = group.culprits
    one = evolve(culprit, boundary=evolve(culprit.boundary, sides=culprit.boundary.sides[:1]))
    lone = evolve(answer, groups=(evolve(group, culprits=(one,)),))
    assert with_evidence(lone, parts.builder, lambda _: "") == lone
