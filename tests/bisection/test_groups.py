"""Tests broken by an upgrade are grouped by how they fail, and one run answers for every group."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.bisection.failures import (
    FailureJudge,
    Group,
    failing_of,
    newly_failing,
    reduced_to,
)
from harness.model import (
    Device,
    Judgement,
    Observation,
    Outcome,
    RaisedException,
    Signature,
    StackFrame,
    TestOutcome,
    TestResult,
    Verdict,
    judge,
)
from harness.model.observation import WHOLE_RUN
from harness.store import Store

GONE = RaisedException(
    "builtins.AttributeError", "`np.asfarray` was removed in the NumPy 2.0 release. Use `np.asarray`."
)
FLOAT = RaisedException("builtins.AttributeError", "module 'numpy' has no attribute 'float_'")
MISSING = RaisedException("builtins.ImportError", "cannot import name 'Model' from 'flask_sqlalchemy' (/a/b/c.py)")


def run(*results: TestResult, outcome: Outcome = Outcome.EXITED, **more) -> Observation:
    return Observation("k", outcome, "pytest", "d", Device.CPU, tests=results, **more)


def ok(*tests: str) -> list[TestResult]:
    return [TestResult(test, TestOutcome.PASSED) for test in tests]


def bad(test: str, raised: RaisedException | None = GONE, outcome: TestOutcome = TestOutcome.FAILED) -> TestResult:
    return TestResult(test, outcome, raised)


def judged(observation: Observation, group: Group) -> Judgement:
    return FailureJudge(group.signature, Store(Path()), tests=group.tests)(observation)


def names_in(groups) -> list[tuple[str, ...]]:
    return [group.tests for group in groups.groups]


# -- which tests are in question


def test_failing_tests_are_separated_from_passing_ones():
    observed = run(*ok("a.py::one"), bad("a.py::two"), bad("b.py", MISSING, TestOutcome.ERROR))
    assert failing_of(observed, ("a.py::one", "a.py::two", "b.py::three")) == ("a.py::two", "b.py::three")


def test_tests_that_miss_one_fixture_are_one_group():
    def missing(test):
        return RaisedException("_pytest.fixtures.FixtureLookupError", f"('event_loop', <SubRequest 'loop' for {test}>)")

    good, after = run(*ok("a.py::one", "a.py::two")), run(*(bad(f"a.py::{t}", missing(t)) for t in ("one", "two")))
    groups = newly_failing([good], [after])
    assert names_in(groups) == [("a.py::one", "a.py::two")]
    assert judged(after, groups.groups[0]).verdict is Verdict.BAD


def test_newly_failing_tests_are_grouped_by_how_they_fail():
    good = run(*ok("a.py::one", "a.py::two", "b.py::three", "b.py::four"))
    after = run(bad("a.py::one"), bad("a.py::two", FLOAT), bad("b.py::three"), *ok("b.py::four"))
    groups = newly_failing([good], [after])
    assert names_in(groups) == [("a.py::one", "b.py::three"), ("a.py::two",)]
    assert groups.groups[0].signature.exception == "AttributeError"
    assert groups.groups[0].signature.message == "`np.asfarray` was removed in the NumPy <number> release."


def test_tests_that_fail_at_both_ends_or_are_skipped_are_in_no_group():
    good = run(bad("t::always"), TestResult("t::skipped", TestOutcome.SKIPPED), *ok("t::new"))
    after = run(bad("t::always"), bad("t::skipped"), bad("t::new"))
    groups = newly_failing([good], [after])
    assert names_in(groups) == [("t::new",)]
    assert groups.failing_at_both == ("t::always",)


def test_a_test_with_contradicting_results_is_flaky_and_in_no_group():
    good, after = run(*ok("t::flaky", "t::broken", "t::odd")), run(bad("t::flaky"), bad("t::broken"), *ok("t::odd"))
    again = [run(*ok("t::flaky", "t::odd"), bad("t::broken"))]
    assert newly_failing([good], [after, *again]).flaky == ("t::flaky",)
    assert names_in(newly_failing([good], [after, *again])) == [("t::broken",)]
    assert newly_failing([good, run(bad("t::broken"))], [after]).flaky == ("t::broken",)


def test_a_test_that_passed_and_now_has_no_result_did_not_run():
    good = run(*ok("t::gone", "t::skipped", "t::still"))
    after = run(TestResult("t::skipped", TestOutcome.SKIPPED), *ok("t::still"))
    groups = newly_failing([good], [after])
    assert groups.not_run == ("t::gone", "t::skipped")
    assert groups.groups == ()


def test_a_test_missing_at_the_good_end_is_in_no_group():
    groups = newly_failing([run(*ok("t::a"))], [run(*ok("t::a"), bad("t::b"), bad("u.py", MISSING))])
    assert groups.groups == ()


@pytest.mark.parametrize(
    ("failed", "inside", "outside"),
    [
        ("tests/a.py", "tests/a.py::b[1]", "tests/ab.py::b"),
        ("tests/a.py::TestB", "tests/a.py::TestB::c", "tests/a.py::TestBC::c"),
        ("tests/conftest.py", "tests/deep/a.py::b", "other/a.py::b"),
        ("conftest.py", "tests/a.py::b", None),
        ("tests/__init__.py", "tests/a.py::b", "a.py::b"),
        ("tests/a", "tests/a/b.py::c", "tests/a.py::c"),
        ("pkg.test_a", "pkg.test_a.TestB.test_c", "pkg.test_ab.TestB.test_c"),
        ("pkg.test_a.TestB", "pkg.test_a.TestB.test_c", "pkg.test_a.TestBC.test_c"),
        (WHOLE_RUN, "tests/a.py::b", None),
    ],
)
def test_a_failed_setup_stands_for_the_tests_in_it(failed, inside, outside):
    good = run(*ok(inside, *([outside] if outside else [])))
    groups = newly_failing([good], [run(bad(failed, MISSING, TestOutcome.ERROR))])
    assert names_in(groups) == [(inside,)]
    assert groups.not_run == ((outside,) if outside else ())


def test_a_test_with_its_own_result_keeps_it():
    good = run(*ok("m.T.a", "m.T.b"))
    groups = newly_failing([good], [run(*ok("m.T.a"), bad("m.T", MISSING, TestOutcome.ERROR))])
    assert names_in(groups) == [("m.T.b",)]


def test_modules_failing_for_the_same_reason_are_one_group():
    """Each reports its own failed import, with the same exception as the cause."""
    good = run(*ok("a.py::x", "b.py::y"))
    wrapped = [RaisedException("builtins.RuntimeError", f"{name} needs a database", cause=MISSING) for name in "ab"]
    groups = newly_failing([good], [run(bad("a.py", wrapped[0]), bad("b.py", wrapped[1]))])
    assert names_in(groups) == [("a.py::x", "b.py::y")]
    assert groups.groups[0].signature.exception == "ImportError"
    assert judged(run(bad("a.py", wrapped[0])), groups.groups[0]).verdict is Verdict.BAD


def test_failed_assertions_are_grouped_by_test_whatever_they_compare():
    differs = RaisedException("builtins.AssertionError", "assert 1.5 == 2\n +  where 1.5 = f()")
    good = run(*ok("a.py::one[1]", "a.py::one[2]", "a.py::two"))
    after = run(bad("a.py::one[1]", differs), bad("a.py::one[2]", differs), bad("a.py::two", differs))
    groups = newly_failing([good], [after])
    assert names_in(groups) == [("a.py::one[1]", "a.py::one[2]"), ("a.py::two",)]
    other = evolve(differs, message="assert 'x' == 2")
    assert judged(run(bad("a.py::two", other)), groups.groups[1]).verdict is Verdict.BAD


def test_without_a_message_the_frame_in_a_package_decides():
    def raised(file):
        own, foreign = StackFrame("test_a.py", 3, "test"), StackFrame(file, 9, "load", "pkg")
        return RaisedException("builtins.NotImplementedError", "", frames=(own, foreign))

    good = run(*ok("t::a", "t::b", "t::c"))
    after = run(bad("t::a", raised("pkg/x.py")), bad("t::b", raised("pkg/y.py")), bad("t::c", raised("pkg/x.py")))
    groups = newly_failing([good], [after])
    assert names_in(groups) == [("t::a", "t::c"), ("t::b",)]
    assert groups.groups[0].signature.frame == "pkg/x.py:load"


def test_parameters_printed_differently_are_the_same_test():
    """The text of a value changes with its package: test[1.0] becomes test[np.float64(1.0)]."""
    good, after = run(*ok("a.py::t[1.0]", "a.py::t[2.0]")), run(bad("a.py::t[np.float64(1.0)]"))
    (group,) = newly_failing([good], [after]).groups
    assert group.tests == ("a.py::t[1.0]", "a.py::t[2.0]")
    assert judged(after, group).verdict is Verdict.BAD
    assert judged(run(*ok("a.py::t[np.float64(1.0)]")), group).verdict is Verdict.GOOD


def test_parameters_that_only_the_bad_end_has_can_fail():
    good, after = run(*ok("a.py::t[1]"), outcome=Outcome.COMPLETED), run(*ok("a.py::t[1]"), bad("a.py::t[2]"))
    (group,) = newly_failing([good], [after]).groups
    assert group.tests == ("a.py::t[2]",)


# -- what one run says to one group

GROUP = Group(("a.py::one", "a.py::two"), Signature(exception="AttributeError", message="was removed in the NumPy"))


@pytest.mark.parametrize(
    ("observation", "verdict", "differs"),
    [
        (run(*ok("a.py::one", "a.py::two")), Verdict.GOOD, False),
        (run(*ok("a.py::one", "a.py::two"), bad("other::three")), Verdict.GOOD, False),
        (run(*ok("a.py::one"), TestResult("a.py::two", TestOutcome.XPASSED)), Verdict.GOOD, False),
        (run(*ok("a.py::one"), bad("a.py::two")), Verdict.BAD, False),
        (run(bad("a.py::one", FLOAT), bad("a.py::two")), Verdict.BAD, False),
        (run(*ok("a.py::one"), bad("a.py::two", FLOAT)), Verdict.SKIP, True),
        (run(bad("a.py", MISSING)), Verdict.SKIP, True),
        (run(*ok("a.py::one"), bad("a.py::two", None)), Verdict.SKIP, True),
        (run(*ok("a.py::one")), Verdict.SKIP, False),
        (run(*ok("a.py::one"), TestResult("a.py::two", TestOutcome.SKIPPED)), Verdict.SKIP, False),
        (run(), Verdict.SKIP, False),
        (run(outcome=Outcome.UNRESOLVABLE, detail="no lock"), Verdict.SKIP, False),
        (run(*ok("a.py::one", "a.py::two"), outcome=Outcome.TIMED_OUT), Verdict.GOOD, False),
    ],
)
def test_a_run_is_judged_by_the_tests_of_the_group(observation, verdict, differs):
    found = judged(observation, GROUP)
    assert (found.verdict, found.differs) == (verdict, differs)
    assert found.reason
    # The same, where a free-standing repro's judge sees it.
    assert judge(reduced_to(observation, GROUP), GROUP.signature).verdict is verdict


def test_each_group_sees_its_own_exception_in_a_run():
    observation = run(bad("a.py::one", FLOAT), bad("a.py::two", GONE), bad("other::three", MISSING))
    assert reduced_to(observation, GROUP).exception == GONE
    assert reduced_to(observation, GROUP).outcome is Outcome.RAISED


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_group_is_bad_at_the_bad_end_and_good_at_the_good_end(data):
    names = [f"{module}.py::t{i}" for module in "abc" for i in range(3)]
    causes = [
        GONE,
        FLOAT,
        MISSING,
        RaisedException("builtins.AssertionError", "assert 1 == 2"),
        RaisedException("E", ""),
    ]
    outcomes = st.sampled_from(["passed", "failed", "skipped", "absent"])

    def end():
        results = []
        for name in names:
            outcome = data.draw(outcomes)
            if outcome != "absent":
                raised = data.draw(st.sampled_from(causes)) if outcome == "failed" else None
                results.append(TestResult(name, TestOutcome(outcome), raised))
        return run(*results)

    good, after = end(), end()
    groups = newly_failing([good], [after])
    for group in groups.groups:
        assert judged(good, group).verdict is Verdict.GOOD
        assert judged(after, group).verdict is Verdict.BAD
    told = [*groups.tests, *groups.failing_at_both, *groups.not_run]
    assert len(told) == len(set(told))
    broken = {t.id for t in good.tests if t.outcome.value == "passed"} & {
        t.id for t in after.tests if t.outcome.is_failure
    }
    assert set(groups.tests) == broken


def test_a_full_stop_makes_no_other_group():
    good = run(*ok("a.py::one", "a.py::two"))
    raised = [RaisedException("builtins.ValueError", f"it is closed{end}") for end in ("", ".")]
    groups = newly_failing([good], [run(bad("a.py::one", raised[0]), bad("a.py::two", raised[1]))])
    assert names_in(groups) == [("a.py::one", "a.py::two")]


def test_a_run_with_another_error_is_never_called_good(parts):
    """A search for the message counts it as good, but says that it differs."""
    group = Group(("a.py::one",), Signature(exception="AttributeError", message="was removed"))
    of_message = evolve(group.judge(parts.store), differing=Verdict.GOOD)
    said = of_message(run(bad("a.py::one", MISSING)))
    assert (said.verdict, said.word) == (Verdict.GOOD, "differs")
    assert of_message(run(*ok("a.py::one"))).word == "good"
    assert group.judge(parts.store)(run(bad("a.py::one", MISSING))).word == "skipped"
