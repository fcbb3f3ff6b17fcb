"""Which of the changed packages is tried first."""

from __future__ import annotations

from harness.culprit.ranking import named_in, ranked
from harness.model import Change, RaisedException, StackFrame

CHANGES = {name: Change(name, "1.0", "2.0") for name in ("aiohttp", "coverage", "docutils", "pytest", "pytest-asyncio")}


def first(*raised: RaisedException) -> str:
    return ranked(CHANGES, raised, "", ("pytest", "docutils"))[0]


def test_the_package_named_in_the_message_comes_first():
    assert first(RaisedException("builtins.AttributeError", "module 'aiohttp' has no attribute 'x'")) == "aiohttp"


def test_a_plugin_comes_first_where_a_fixture_is_missing():
    missing = RaisedException("_pytest.fixtures.FixtureLookupError", "('event_loop', <SubRequest 'loop'>)")
    assert first(missing) == "pytest-asyncio"
    assert named_in((missing,), tuple(CHANGES))[0] == "pytest-asyncio"


def test_a_failure_worded_by_pytest_does_not_implicate_pytest():
    frames = (StackFrame("_pytest/outcomes.py", 3, "fail", package="pytest"),)
    failed = RaisedException("_pytest.outcomes.Failed", "DID NOT RAISE <class 'ValueError'>", frames=frames)
    assert first(failed) == "docutils"
    assert named_in((failed,), tuple(CHANGES)) == ()


def test_a_package_in_the_traceback_comes_first():
    frames = (StackFrame("aiohttp/web.py", 3, "run", package="aiohttp"),)
    assert first(RaisedException("builtins.AssertionError", "", frames=frames)) == "aiohttp"


def test_pytest_comes_first_where_it_raised_an_error_of_its_own():
    inner = StackFrame("_pytest/recwarn.py", 3, "__init__", package="_pytest")
    outer = StackFrame("aiohttp/web.py", 3, "run", package="aiohttp")
    refused = RaisedException("builtins.TypeError", "exceptions must be derived from Warning", frames=(outer, inner))
    assert first(refused) == "pytest"
    assert named_in((refused,), tuple(CHANGES)) == ("pytest", "aiohttp")
    failed = RaisedException("builtins.TypeError", "", frames=(inner, outer))
    assert named_in((failed,), tuple(CHANGES)) == ("aiohttp",)


def test_packages_with_the_largest_step_come_first_if_nothing_points_to_one():
    steps = {"a": ("1.0.0", "1.0.1"), "b": ("1.0", "2.0"), "c": ("1.0", "1.1")}
    changes = {name: Change(name, *step) for name, step in steps.items()}
    assert ranked(changes, (), "", ("a", "b", "c")) == ("b", "c", "a")
    assert ranked(changes, (), "", ("c",))[0] == "c"
