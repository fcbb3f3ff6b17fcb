"""What is tried first: traceback, request, size of the step. The order never decides what is found."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.clues import ranked_packages
from harness.culprit.sides import Side, Sides
from harness.model import Change, Device, Lock, Observation, Outcome, RaisedException, Repro, StackFrame, Verdict
from harness.planning.inquiry import Scope

LOCK = Lock("3.11", "linux", ())


def scope_of(*dependencies):
    return Scope(Repro("r", "d", source="", dependencies=dependencies), "3.11", (), subject="shop")


def sides_of(*frames, loaded=None, message="x"):
    """`frames` are (file, function, package), the outermost first."""
    good = Observation("g", Outcome.COMPLETED, "r", "d", Device.CPU, loaded=loaded or {})
    stack = tuple(StackFrame(file, 1, function, package) for file, function, package in frames)
    raised = RaisedException("builtins.ValueError", message, (), stack)
    bad = evolve(good, key="b", outcome=Outcome.RAISED, exception=raised)
    return Sides(Side(LOCK, Verdict.GOOD, good), Side(LOCK, Verdict.BAD, bad))


def changes_of(**steps):
    return {name: Change(name, *step) for name, step in steps.items()}


def test_packages_with_the_largest_step_come_first():
    changes = changes_of(a=("1.0.0", "1.0.1"), b=("1.0", "2.0"), c=("1.0", "1.1"))
    assert ranked_packages(changes, sides_of(), scope_of("a", "c")) == ("b", "c", "a")


def test_equal_steps_are_ordered_by_traceback_request_subject_and_use():
    names = ("unused", "used", "shop", "asked", "outer", "inner")
    changes = changes_of(**dict.fromkeys(names, ("1.0", "1.1")))
    sides = sides_of(("o.py", "f", "outer"), ("i.py", "f", "inner"), loaded={"used": ("used.py",)})
    assert ranked_packages(changes, sides, scope_of("asked[extra]~=1.0; python_version>'3'")) == (
        "inner",
        "outer",
        "asked",
        "shop",
        "used",
        "unused",
    )
