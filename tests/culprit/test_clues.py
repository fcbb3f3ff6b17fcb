"""How evidence is weighed, and that no evidence has no weight."""

from __future__ import annotations

from attrs import evolve
from edited import edits_of, unit

from harness.culprit.clues import Clues, Pointers
from harness.culprit.sides import Side, Sides
from harness.model import Device, Lock, Observation, Outcome, RaisedException, StackFrame, Trace, Verdict

STEP = "def {0}(x):\n    return x + 1\n\n\n"
BEFORE = {"shop/a.py": STEP.format("ran") + STEP.format("idle") + "def told(x):\n    # one\n    return x\n"}
AFTER = {"shop/a.py": BEFORE["shop/a.py"].replace("+ 1", "+ 2").replace("# one", "# two")}
LOCK = Lock("3.11", "linux-x86_64", ())


def sides_of(*frames, loaded=None, message="x"):
    """`frames` are (file, function, package), the outermost first."""
    good = Observation("g", Outcome.COMPLETED, "r", "d", Device.CPU, loaded=loaded or {})
    stack = tuple(StackFrame(file, 1, function, package) for file, function, package in frames)
    raised = RaisedException("builtins.ValueError", message, (), stack)
    bad = evolve(good, key="b", outcome=Outcome.RAISED, exception=raised)
    return Sides(Side(LOCK, Verdict.GOOD, good), Side(LOCK, Verdict.BAD, bad))


def test_executed_code_weighs_more_and_a_comment_weighs_least(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    trace = Trace(called={"shop/a.py": {"ran": 3, "told": 4}}, lines={"shop/a.py": (1, 2, 9, 11)})
    weights = Clues(sides_of(), "", trace, trace).weights(edits)
    ran, idle = (next(one for one in edits.all if edits.function(one) == name) for name in ("ran", "idle"))
    assert weights[ran] > weights[idle] > weights[unit(edits, "# two")] > 0


def test_a_function_that_neither_side_called_is_idle(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    idle = next(one for one in edits.all if edits.function(one) == "idle")
    trace = Trace(called={"shop/a.py": {"ran": 3, "told": 4}}, lines={"shop/a.py": (1, 2)})
    other = Trace(called={"shop/a.py": {"ran": 3, "idle": 4, "told": 5}}, lines={"shop/a.py": (1, 2)})
    assert Clues(sides_of(), "", trace, trace).idle(edits) == {idle}
    assert Clues(sides_of(), "", trace, other).idle(edits) == frozenset()
    assert Clues(sides_of(), "", trace).idle(edits) == frozenset()
    assert Clues(sides_of(), "", trace, Trace()).idle(edits) == frozenset()


def test_without_a_trace_the_traceback_decides(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    weights = Clues(sides_of(("shop/a.py", "idle", "shop")), "").weights(edits)
    assert edits.function(max(weights, key=weights.get)) == "idle"


def test_a_place_that_the_api_points_to_weighs_more(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    idle = next(one for one in edits.all if edits.function(one) == "idle")
    a, _, _, _ = edits.block(idle)
    pointers = Pointers(older=frozenset({("shop/a.py", a + 1)}))
    plain, pointed = (Clues(sides_of(), "", pointers=one).weights(edits) for one in (Pointers(), pointers))
    assert pointed[idle] > 10 * plain[idle]
    assert {one: weight for one, weight in pointed.items() if one != idle} == {
        one: weight for one, weight in plain.items() if one != idle
    }


def test_a_word_of_the_failure_weighs_more_the_rarer_it_is(tmp_path):
    """The words are those of the message and of the user's own line; prose and a package's own lines say nothing."""
    step = "def {0}(x):\n    the = {1}\n    return x\n\n\n"
    before = {"shop/a.py": "".join(step.format(name, "0, " + name) for name in ("price", "tax", "rate", "other"))}
    after = {"shop/a.py": before["shop/a.py"].replace("0, tax", "1, tax").replace("0, ", "2, price, ")}
    edits = edits_of(tmp_path, before, after)
    frames = (StackFrame("a.py", 2, "f", "shop", "rate"), StackFrame("repro.py", 3, "<module>", text="assert tax == 1"))
    failure = RaisedException("builtins.AssertionError", "the price is 2", (), frames)
    silent, spoken = sides_of(), sides_of()
    spoken = evolve(spoken, after=evolve(spoken.after, observation=evolve(spoken.after.observation, exception=failure)))
    plain, told = (Clues(one, "").weights(edits) for one in (silent, spoken))
    more = {edits.function(one): told[one] / plain[one] for one in edits.all if edits.is_region(one)}
    assert more["tax"] > more["rate"] > 1
    assert more["rate"] == more["other"] == more["price"]
    raised_inside = evolve(failure, frames=frames[::-1])
    silent, spoken = (
        evolve(sides_of(), after=evolve(spoken.after, observation=evolve(spoken.after.observation, exception=one)))
        for one in (evolve(raised_inside, message="x"), raised_inside)
    )
    assert Clues(silent, "").weights(edits) == Clues(spoken, "").weights(edits)


def test_a_module_that_the_api_says_was_removed_weighs_most(tmp_path):
    gone = {"shop/old.py": "def price():\n    return 1\n", "shop/older.py": "def tax():\n    return 2\n"}
    edits = edits_of(tmp_path, BEFORE | gone, AFTER)
    pointers = Pointers(older=frozenset({("shop/old.py", 1)}))
    weights = Clues(sides_of(("shop/a.py", "idle", "shop")), "", pointers=pointers).weights(edits)
    assert max(weights, key=weights.get) == "shop/old.py"
    assert weights["shop/old.py"] > 100 * weights["shop/older.py"]
